// Package carriage is the client shared by all transports of the lab, so that only the transport differs between them:
// clouds are captured, cut into tiles, encoded and passed to a transport's end; frames from the other end are ordered,
// decoded and shown. Frames may be prepared in a file instead, and then cost nothing to encode.
//
// The stages are those of paper 001: capture, tiling, a bounded queue before the encoder whose oldest capture is
// dropped, encoding, a bounded queue before each stream of the transport, the transport, a queue before the decoder
// that keeps the newest frame of each tile, decoding, and the display. Each stage leaves its time in the record of a
// tile's frame (package frametimes).
//
// Publish and Watch run one peer's halves. Both start goroutines, which have ended when they return. An End is shared
// by both.
package carriage
