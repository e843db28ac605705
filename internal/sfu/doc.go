// Package sfu is the control plane of one node: rooms, participants, publications and subscriptions.
//
// A Node finds rooms and sessions by name under one lock (package directory), and checks which clients may join
// (package admission). One goroutine owns each room. The goroutine reads requests from a channel and never waits:
// messages to clients go through bounded outboxes, and commands to peer connections through lists. One goroutine owns
// each participant's peer connection (package peer), because session descriptions of hundreds of lines need time.
//
// The participants of a room may be on several nodes. A node tells the events of its own participants to the other
// nodes (package roomevent), and each participant of another node is a mirror in the room. All participants have a
// presence (package presence), which the others see. If a session moves, the next node continues the session from a
// record (package sessionrecord).
//
// The room's goroutine decides which qualities receivers get. Every 50 ms it reads the estimates of links, the rates of
// tracks, viewpoints and poses, and each receiver's Subscriber (package subscriber) decides if a change matters. A
// receiver's own choice takes effect when its message is read. The assignments of slots determine which tracks are
// used, and so which tracks publishers are asked for (package demand). If a slot is assigned a track that its publisher
// has paused, the slot forwards its present track until the first frame of the new track has arrived. All steps use the
// time of the present request (Room.now).
//
// Data messages between participants have limits (package dataflow). A participant may ask for the times of frames
// (package frametimes). The recording of a room (package roomrecording) is a receiver without a connection.
//
// Differences between client protocols are values of a profile.
package sfu
