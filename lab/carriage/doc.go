// Package carriage is the client shared by all transports of the lab, so that only the transport differs between them.
// The publishing half captures clouds, cuts them into tiles, encodes the tiles and passes them to a transport's end.
// The watching half orders, decodes and shows frames from the other end. Frames may be prepared in a file instead; then
// encoding costs nothing.
//
// The stages are those of paper 001: capture, tiling, a bounded queue before the encoder whose oldest capture is
// dropped, encoding, a bounded queue before each stream of the transport, the transport, a queue before the decoder
// that keeps the newest frame of each tile, decoding, and the display. Each stage writes its time into the record of a
// tile's frame (package frametimes).
//
// Publish and Watch run the halves of one peer. Both start goroutines, which have ended when Publish and Watch return.
// Both halves share one End.
package carriage
