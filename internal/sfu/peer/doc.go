// Package peer runs the peer connection of one participant.
//
// The goroutine of a Connection owns the peer's negotiation: it brings the lines to what its owner wants, offers
// them, and applies the client's answers. The SFU is the only offerer, and one offer at a time waits for its answer.
// The owner, a room, tells the connection commands, which do not wait, and is told what happens (Owner). Session
// descriptions of hundreds of lines take time, so they do not belong on the room's goroutine.
//
// Frames that a client publishes or takes over data channels instead of media lines go through the connection, too.
package peer
