// Package subscriber decides what one receiver is sent.
//
// A Subscriber has the receiver's slots, its choices, its viewpoint and the estimate of its link. Publications are
// plain views (Publication): what there is, where it stands, what its tracks cost. The subscriber lays its slots out
// as an allocator's scene, has the allocator turn the budget into qualities, tells each slot what to carry, and
// returns what the client is to be told.
//
// The package is pure: it has no goroutine, no lock and no clock of its own. The goroutine of a room owns everything
// in it and passes the time to each step. Of the data plane it knows the path of a receiver (Link) and the forwarding
// end of a slot (Output), whose methods do not wait.
package subscriber
