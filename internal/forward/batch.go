package forward

import "time"

// How packets leave. A peer sends what it has queued in runs of packets of one size, one system call for each run, and the longer the run, the less a packet
// costs (measured on one core, in addition to 0.35 µs for sealing):
//
//	packets in the run      1     5    10    16    43
//	µs per packet sent    4.5   1.6   1.0  0.75  0.55
//
// A writer therefore takes what there is, queues it, and flushes once nothing is left to take: a burst that its reader has signalled as one leaves as one run
// per receiver. The 16 packets of a publisher's pacer, to 10 receivers, have left after 160 × (0.35 + 0.75) = 176 µs; sent one by one they would take 776 µs.
//
// While there is always more to take, two bounds end a batch. A receiver is flushed when its run is full (runPackets). All are flushed when the first packet
// queued has waited for batchTime, which is what many receivers meet first: without it, the first of 43 packets to 50 receivers would wait until 2,150 are
// sealed, 750 µs.
//
//	10 receivers: 43 packets each, 430 × 0.35 = 150 µs for sealing and 430 × 0.55 = 240 µs for sending: the last one has left after 390 µs
//	50 receivers: 11 packets each, 570 × 0.35 = 200 µs for sealing and 570 × 0.95 = 540 µs for sending: the last one has left after 740 µs
//
// Both are below the millisecond that a packet may stay. Audio, which is queued ahead of all else, has left by then, too.
const (
	// runPackets: the 64 kB of a segmented send hold 43 packets of 1,500 bytes, so a peer has room for as many whatever their size, and does not cut
	// the run by sending before. Longer runs save next to nothing: 50 packets are at 0.54 µs.
	runPackets = 43
	// batchTime counts from when the first packet is queued, not from its arrival: otherwise a writer that has fallen behind would flush after every group
	// of packets, in short runs, and fall behind further.
	batchTime = 200 * time.Microsecond
)

// queued notes that the receiver's peer has been given a packet with so many bytes of payload.
func (w *writer) queued(r *Receiver, bytes int) {
	if r.pacer != nil {
		r.pacer.Spend(bytes)
	}
	if r.queued == 0 {
		if len(w.unsent) == 0 {
			w.flushDue = w.now.Add(batchTime)
		}
		r.place = len(w.unsent)
		w.unsent = append(w.unsent, r)
	}
	if r.queued++; r.queued == runPackets {
		w.flush(r)
	}
}

// flush takes the receiver off the list of the unsent and sends what its peer has been given.
func (w *writer) flush(r *Receiver) {
	last := len(w.unsent) - 1
	moved := w.unsent[last]
	w.unsent[r.place], moved.place = moved, r.place
	w.unsent[last] = nil
	w.unsent = w.unsent[:last]
	w.send(r)
}

// flushAll sends what the peers of all receivers have been given, the one first that was given something first.
func (w *writer) flushAll() {
	for i, r := range w.unsent {
		w.unsent[i] = nil
		w.send(r)
	}
	w.unsent = w.unsent[:0]
}

// send flushes a receiver's peer, open or closed. Sending takes time like queueing.
func (w *writer) send(r *Receiver) {
	w.writes += r.queued
	r.queued = 0
	r.peer.Flush()
}
