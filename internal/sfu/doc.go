// Package sfu is the control plane of one node: rooms, participants, publications and subscriptions.
//
// A Node maps names to rooms and sessions under one lock. One goroutine owns each room. The goroutine reads requests
// from a channel and never waits: messages to clients go through bounded outboxes, and commands to peer connections
// through lists. One goroutine owns each participant's peer connection (package peer), because session descriptions of
// hundreds of lines need time.
//
// The room's goroutine decides which qualities receivers get. Every 50 ms it reads the estimates of links, the rates of
// tracks, viewpoints and poses, and each receiver's Subscriber (package subscriber) decides if a change matters. A
// receiver's own choice takes effect when its message is read. The assignments of slots determine which tracks are
// used, and so which tracks publishers are asked for (package demand). If a slot is assigned a track that its publisher
// has paused, the slot forwards its present track until the first frame of the new track has arrived. All steps use the
// time of the present request (Room.now).
//
// Differences between client protocols are values of a profile.
package sfu
