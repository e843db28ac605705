// Package peer runs the peer connection of one participant.
//
// The goroutine of a Connection owns the negotiation of the peer: it creates the lines that its owner wants, offers the
// lines, and applies the client's answers. The SFU is the only offerer, and at most one offer awaits its answer. Only
// clients of WHIP and WHEP offer themselves, once (Config.Offer), and their lines never change. The owner, a room,
// sends commands to the connection, which do not wait, and receives events (Owner). Session descriptions of hundreds of
// lines need time, so the room's goroutine does not process them.
//
// Frames that a client publishes or receives over data channels instead of media lines pass through the connection,
// too.
package peer
