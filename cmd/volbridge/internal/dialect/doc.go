// Package dialect is a client of VR2Gather's dialect, compatible with VR2Gather's own peer: a websocket with text
// messages, offers only from the server, one media line for audio and one for each tile at each quality, and RTP
// headers of 20 bytes. The content of packets and reconnection are left to the callers.
//
// A Session has one goroutine that reads the websocket, one that negotiates and writes to the websocket, and one per
// received track, which delivers packets to the Sink. The methods of a Session are safe for concurrent use.
package dialect
