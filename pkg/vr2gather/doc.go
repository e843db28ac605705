// Package vr2gather holds the wire forms of VR2Gather's WebRTC transport, as its native connector, its peer and the SFU of that peer speak them: the
// header of a frame, the packets that carry a frame, the text messages of the websocket, the names of tracks, quality choices, and the datagrams
// between connector and peer on one machine. It only parses and appends; what a server, a client or a bridge makes of these forms is theirs.
//
// All numbers are little-endian. Functions and values here keep no state, start no goroutines and may be used from anywhere; what a parser
// returns refers to the bytes that it was given, unless it says otherwise.
package vr2gather
