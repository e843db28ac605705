// Package sfu is the control plane of one node: rooms, participants, publications and subscriptions.
//
// A Node maps names to rooms and sessions under one lock. One goroutine owns each room. It takes requests from a
// channel and never waits: clients are written to through bounded outboxes, peer connections are told through command
// lists. One goroutine owns each participant's peer connection (connection), since session descriptions of hundreds
// of lines take time.
//
// The room's goroutine decides what receivers are sent. Every 50 ms it looks at the estimates of links, the rates of
// tracks, viewpoints and poses, and has each receiver's Subscriber (package subscriber) decide if a change matters. A
// choice of the receiver's own takes effect when it is read. From what the slots carry follows which tracks are
// taken, and which tracks publishers are asked for (package demand). A slot that is told to carry a track that its
// publisher has paused goes on with its present track until the first frame of the other has come. All of this is
// stepped with the time of the request at hand (Room.now).
//
// Differences between client protocols are values of a profile.
package sfu
