// Package dialect is the client's end of VR2Gather's dialect, as VR2Gather's own peer speaks it: the websocket with its
// texts, offers that only the server makes, a line for sound and one for each tile at each quality, and RTP headers of
// 20 bytes. What packets carry is its callers' affair, and so is joining again.
//
// A Session has one goroutine that reads the websocket, one that owns negotiation and writes the websocket, and one per
// received track, which hands packets to the Sink. The methods of a Session are safe for concurrent use.
package dialect
