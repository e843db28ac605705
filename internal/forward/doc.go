// Package forward is the hot path of the server: from incoming RTP packets to the slots of all receivers.
//
// A Track is one incoming RTP stream. Its packets stand once in a log, in order of arrival, whatever the number of receivers. The goroutine
// that reads a publisher establishes the facts of each packet and appends it to the log (Ingress.RTP), and at the end of each batch that has arrived
// together signals the writers that follow the tracks and sleep (Ingress.Flush). A writer owns receivers with their slots, and has a goroutine; where that sleeps,
// the reader does the writer's work itself, as long as it is no more than a packet may stay (turn). A writer follows
// each track that any of its slots takes with one position in that track's log. It takes what there is of all of them as one bounded burst, and gives the burst to
// one receiver after the other: it asks the switcher of each slot (pkg/switching) what becomes of a packet, queues it on the slot's outlet, and flushes the
// receiver's peer, so that a burst leaves as one run per receiver.
//
// Frames are spread over a part of the frame interval (internal/congestion/pacing). The reader notes when each packet is due, once for all receivers. A packet that
// is not due yet waits for its receiver's next tick, with a reference to it, before its slot's switcher: it takes a sequence number when it leaves, so that a
// frame that waits for too long is dropped whole, without a gap. Audio and repairs never wait; retransmissions do where a receiver has an estimate, ahead of all
// else and no longer than they are of use. Where pacing is off, nothing does.
//
// Nothing is sent of a frame that cannot be completed any more, neither first nor again, though it has begun (ending.go): because packets of it have not come from the publisher and are given up, or because what is
// left of it has waited beyond the receiver's deadline.
//
// What is sent to a receiver that agrees on it is numbered over all its slots, and an estimator (internal/congestion) makes of its reports what it can take. The
// writer steps the estimator, tells the pacer, and sends probes: for some milliseconds everything leaves at a rate above the estimate, media that waits first, then
// repetitions by the retransmission stream. Receiver.Path tells what is known of the way; how many parity packets a receiver is sent follows from that, too.
//
// But for that the log is the queue: what an outlet has queued waits for the rest of its burst, not for its receiver. A writer that falls behind by more than
// a log holds loses whole frames; it never makes a reader wait for longer than that, and nothing that one receiver does delays receivers of other writers.
//
// What VR2Gather's peers send becomes payload v1 as it arrives (converter), and payload v1 becomes theirs on its last step (VR2GatherOutlet): nothing between knows the
// difference, and nobody else pays for it.
//
// Who owns what: a track's log is appended to under its ingress's mutex, and read by anyone without locks. All that a slot keeps is its
// writer's, which means whoever has the writer's turn, but for its mail, which is the writer's inbox's. Control calls are safe for any goroutine, at any time, and do not wait for writers.
package forward
