// Package egress takes packets from the logs of tracks to the slots of receivers.
//
// A writer owns receivers with their slots, and has a goroutine. While that sleeps, the reader that brings packets does
// the writer's work (package turn). A writer follows each track that any of its slots takes with one position in that
// track's log. It takes what there is of all of them as one bounded burst, and gives the burst to one receiver after
// the other: it asks the switcher of each slot (pkg/switching) what becomes of a packet, queues the packet on the
// slot's outlet, and flushes the receiver's peer, so that a burst leaves as one run per receiver.
//
// Frames are spread over a part of the frame interval (internal/congestion/pacing). The reader notes when each packet
// is due, once for all receivers. A packet that is not due yet waits for its receiver's next tick, with a reference to
// it, before its slot's switcher: it takes a sequence number when it leaves, so that a frame that waits for too long is
// dropped whole, without a gap. Audio and repairs never wait. Retransmissions wait if a receiver has an estimate, ahead
// of all else and no longer than they are of use.
//
// Nothing is sent of a frame that cannot be completed any more, neither first nor again, though it has begun.
//
// What is sent to a receiver that agrees on it is numbered over all its slots, and the receiver's sender
// (internal/congestion/sender) makes of its reports what it can take. The writer steps the sender and sends its probes:
// for some milliseconds everything leaves at a rate above the estimate, media that waits first, then repetitions by the
// retransmission stream. Receiver.Path is what is known of the path. The share of parity packets that a receiver is
// sent follows from the path, too.
//
// Everything in a slot, and what is marked so in a receiver, belongs to the goroutine that has the writer's turn.
// Requests of other goroutines go by the writer's inbox. The methods of Receiver and Slot are safe for any goroutine,
// and do not wait for the writer.
package egress
