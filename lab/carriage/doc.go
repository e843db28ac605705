// Package carriage is the client that all transports of the lab share, so that only the transport differs between them: clouds are captured, cut into
// tiles, encoded and handed to a transport's end; what the other end gives is put into order, decoded and shown. Frames may be prepared in a file
// instead, which then cost nothing to encode.
//
// The stages are those of paper 001: capture, tiling, a bounded queue before the encoder whose oldest capture is dropped, encoding, a bounded queue
// before each stream of the transport, the transport, a queue before the decoder that keeps the newest frame of each tile, decoding, and the display.
// Each leaves its time in the record of a tile's frame (package frametimes).
//
// Publish and Watch run one peer's halves; both keep goroutines of their own, which have ended when they return. An End is shared by them.
package carriage
