// Package sfu is the control plane of one node: rooms, participants, publications and subscriptions.
//
// A Node maps names to rooms and sessions under one lock. Each room is owned by one goroutine, which takes requests from a channel and never
// waits for anybody: clients are written to through bounded outboxes, peer connections are told through command lists. Each participant's
// peer connection is owned by a goroutine of its own (connection), since session descriptions of hundreds of lines take their time.
//
// What receivers are sent is decided by the room's goroutine, too. It looks every 50 ms at what is known of each link (forward.Path), of the rates of tracks,
// of viewpoints and of poses, and has internal/allocate decide where something has changed that matters; a choice of the receiver's own is carried out when it is
// read. From what slots carry follows which tracks somebody takes, and what publishers are asked for (suppression). A slot that is told to carry what a publisher
// has paused goes on with what it has until the first frame of the other has come. All of this is stepped with the time of the request at hand (Room.now).
//
// A participant that speaks VR2Gather's dialect is one like others, with three differences: its publications are announced once their first frames have come, it is
// subscribed only to what it can read, and each of its lines carries one tile of one client for good, since packets and descriptions name that; only where it may have
// no more lines does an idle one get another name, by an offer.
package sfu
