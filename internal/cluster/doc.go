// Package cluster holds the state of rooms that several nodes share: which participants and publications each node has,
// which nodes are alive, and which participant has an identity.
//
// A room has no owner. Each participant has a home, the node with its peer connection, and only the home writes the
// participant's record and publications. A Replica is the state of one node: the journal of its own rooms, and mirrors
// of the rooms of other nodes. No two nodes write the same record, so the order of changes of different nodes does not
// matter.
//
// # Replication
//
// Each node numbers its changes by one counter for all its rooms. A Delta carries the changes of one step in one room,
// with its own number and the number of the preceding delta of this room. A mirror applies a delta if the preceding
// number is that of the mirror. Otherwise a delta is missing, and the mirror requests a Snapshot, which carries the
// whole room at one number, in parts of bounded length. Each Beat carries the rooms that changed in the last second
// with their latest numbers, and a sum over all rooms. A receiver whose sum differs requests the whole Digest. So a
// receiver finds a lost message with the next beat, and an idle beat has the same length for any number of rooms.
//
// Only nodes in a room mirror the room. All nodes know which rooms the others have.
//
// # Liveness
//
// A node beats every 200 ms. After 650 ms without a beat (three beats and 50 ms) a node is suspected. A suspected node
// is dead if its trunk has been silent for 500 ms, too. Without a trunk the node is dead if two others suspect it (all
// others, if there are fewer), or after 10 s. If no node beats, this node has lost the fabric, and only trunks decide;
// a node without a trunk is then dead after 60 s.
// A node that did not run for a while, as after SIGSTOP, adds this time to the times of all others, whose messages it
// has not read.
// The participants of a dead node are detached. They are removed after the resume grace, or return with the node. An
// incarnation identifies the process of a node: a later incarnation ends the earlier one, and messages of earlier
// incarnations are dropped.
//
// # Identities
//
// Two nodes may have the same identity in a room, after a partition or after an adoption of a session. Of claims with
// the same session the higher epoch wins. Of different sessions a live one wins over a detached one, then the earlier
// join, then the lower session. The home closes the losing participant. A home closes a participant that joined later
// only after a beat has confirmed the other claim, so that two homes with different knowledge do not both close theirs.
//
// A kick and the end of a room leave a Tombstone for 60 s, and so does the end of an adopted session. Each beat carries
// the tombstones of its node, and those that the node knows of dead nodes, at most 64 at a time in turn. A tombstone
// removes the claims that it covers from all views, and their homes close the participants.
//
// # Limits
//
// Messages have at most 256 KiB. For each node the rates of messages, of bytes and of answered requests are limited,
// and the memory of its mirrors. A message beyond a limit is dropped and counted. The next beat repairs the loss.
//
// # Parts
//
// A Replica has two parts: the nodes, this one and the others as it knows them, and the views, the rooms of this node
// with the claims of all nodes. The package is pure: a Replica is stepped with an explicit now and returns the messages
// to send and the events. There are no goroutines, locks or clocks. A Replica belongs to one goroutine. Decode and
// Encode may run on any goroutine.
package cluster
