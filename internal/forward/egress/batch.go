package egress

import (
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
)

// How packets leave. A peer sends what it has queued in runs of packets of one size, one system call for each run, and the longer the run, the less a packet
// costs (measured on one core, in addition to 0.35 µs for sealing):
//
//	packets in the run      1     5    10    16    43
//	µs per packet sent    4.5   1.6   1.0  0.75  0.55
//
// A writer therefore takes what there is as one burst, and gives it to one receiver after the other: a burst that its reader has signalled as one leaves as one
// run per receiver. Of the 16 packets of a publisher's pacer, to 10 receivers, those of the first have left after 16 × (0.35 + 0.75) = 18 µs and those of the
// last after 176 µs; sent one by one they would take 776 µs.
//
// While there is always more to take, two bounds end a burst, which keep the last packet's stay below the millisecond that a packet may stay: a run that is full
// (runPackets), and what is to be written to all receivers (burstWrites).
//
//	10 receivers: 43 packets each, 430 × 0.35 = 150 µs for sealing and 430 × 0.55 = 240 µs for sending: the last one has left after 390 µs
//	50 receivers: 11 packets each, 550 × 0.35 = 190 µs for sealing and 550 × 0.95 = 520 µs for sending: the last one has left after 710 µs
//
// Audio, which is queued ahead of all else, has left by then, too.
//
// runPackets: the 64 kB of a segmented send hold 43 packets of 1,500 bytes, so a peer has room for as many whatever their size, and does not cut
// the run by sending before. Longer runs save next to nothing: 50 packets are at 0.54 µs.
const runPackets = 43

// queued notes that the receiver's peer has been given a packet with so many bytes of payload.
func (w *writer) queued(r *Receiver, bytes int) {
	bytes += congestion.PacketOverhead
	r.departed.bytes += uint64(bytes)
	if r.sender.Spend(bytes) {
		w.stepDue = min(w.stepDue, r.sender.StepDue())
	}
	if r.queued == 0 {
		r.place = len(w.unsent)
		w.unsent = append(w.unsent, r)
	}
	if r.queued++; r.queued == runPackets {
		w.flush(r)
	}
}

// depart flushes a receiver that has been served. What it is sent may wait for what the next ones are.
func (w *writer) depart(r *Receiver) {
	if r.queued > 0 {
		w.flush(r)
	}
	w.readClock()
	if w.batch.Empty() {
		w.departed()
	}
}

// dispatch sends what waits in the batch, and counts what has been sent.
func (w *writer) dispatch() {
	if w.batch.Empty() && len(w.arrived) == 0 {
		return
	}
	w.batch.Send()
	w.readClock()
	w.departed()
}

// departed counts how long the packets have stayed that have been sent by now.
func (w *writer) departed() {
	now := w.set.clock.Since(w.now)
	for _, since := range w.arrived {
		w.stats.residence.Observe(time.Duration(now-since), 1)
	}
	w.arrived = w.arrived[:0]
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

// flushAll sends what the peers of all receivers have been given, that of the first one first.
func (w *writer) flushAll() {
	for i, r := range w.unsent {
		w.unsent[i] = nil
		w.send(r)
	}
	w.unsent = w.unsent[:0]
	w.dispatch()
}

// send flushes a receiver's peer, open or closed. Sending takes time like queueing.
func (w *writer) send(r *Receiver) {
	w.writes += r.queued
	r.queued = 0
	r.peer.Post(w.batch)
}
