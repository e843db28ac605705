// Package vr2gather implements the wire formats of VR2Gather's WebRTC transport, as used by its
// native connector, its peer and the SFU of that peer: the frame header, the packets of a frame,
// the text messages of the websocket, the names of tracks, quality choices, and the datagrams
// between connector and peer on one machine. The package only parses and appends; servers, clients
// and bridges interpret the data.
//
// All numbers are little-endian. Functions and values have no state, start no goroutines and are
// safe for concurrent use. The result of a parser refers to the parsed bytes unless its comment
// states otherwise.
package vr2gather
