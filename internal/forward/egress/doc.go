// Package egress forwards packets from the logs of tracks to the slots of receivers.
//
// A writer owns receivers with their slots, and has a goroutine. While the goroutine sleeps, the reader that delivers
// packets does the writer's work (package turn). A writer follows each track that any of its slots takes, with one
// position in the track's log. It takes the available packets of all tracks as one bounded burst and serves one
// receiver after the other: the switcher of each slot (pkg/switching) decides about each packet, forwarded packets are
// queued on the slot's outlet, and then the receiver's peer is flushed, so that a burst leaves as one run per receiver.
//
// Frames are spread over a part of the frame interval (internal/congestion/pacing). The reader sets the departure time
// of each packet, once for all receivers. A packet that is not yet due waits for its receiver's next tick, by
// reference, before the slot's switcher. A packet gets its sequence number only when it leaves, so that a frame that
// waits for too long is dropped completely and without a gap. Audio and late packets never wait. Retransmissions wait
// if a receiver has an estimate, ahead of all other packets and for no longer than they are useful.
//
// No packet of a frame that can no longer be completed is sent or retransmitted, even if the frame has begun.
//
// If a receiver's peer has negotiated it, packets are numbered over all slots, and the receiver's sender
// (internal/congestion/sender) estimates the path's capacity from the receiver's reports. The writer steps the sender
// and sends its probes: for some milliseconds packets leave at a rate above the estimate, waiting media first, then
// repetitions on the RTX stream. Receiver.Path is the state of the path. The path also determines the share of parity
// packets that a receiver is sent.
//
// The state of a slot, and the marked fields of a receiver, belong to the goroutine that has the writer's turn. Other
// goroutines send requests to the writer's inbox. The methods of Receiver and Slot are safe for any goroutine and do
// not wait for the writer.
package egress
