// Package sfu is the control plane of one node: rooms, participants, publications and subscriptions.
//
// A Node maps names to rooms and sessions under one lock. Each room is owned by one goroutine, which takes requests from a channel and never
// waits for anybody: clients are written to through bounded outboxes, peer connections are told through command lists. Each participant's
// peer connection is owned by a goroutine of its own (connection), since session descriptions of hundreds of lines take their time.
package sfu
