// Package signalling is the websocket server: signalling v1 at signal.Path. It decides who may come in, reads and
// writes messages within limits, and hands them to internal/sfu. Each client has a goroutine that reads (the HTTP
// server's own) and one that writes, which owns the websocket's writing side; neither waits for another client.
//
// Beside it stands the dialect of VR2Gather's peers (VR2GatherServer), which join by connecting, and know offers,
// answers, candidates and quality choices only. What they say becomes messages of signalling v1, and what the room
// tells them becomes theirs, as far as there are words for it.
package signalling
