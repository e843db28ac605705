package egress

import (
	"time"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/trace"
)

// How packets leave. A peer sends what it has queued in runs of packets of one size, one system call for each run, and
// the longer the run, the less a packet costs (measured on one core, in addition to 0.35 µs for sealing):
//
//	packets in the run      1     5    10    16    43
//	µs per packet sent    4.5   1.6   1.0  0.75  0.55
//
// A writer therefore takes what there is as one burst, and gives it to one receiver after the other: a burst that its
// reader has signalled as one leaves as one run per receiver. Of the 16 packets of a publisher's pacer, to 10
// receivers, those of the first have left after 16 × (0.35 + 0.75) = 18 µs and those of the last after 176 µs; sent one
// by one they would take 776 µs.
//
// While there is always more to take, two bounds end a burst, which keep the last packet's stay below the millisecond
// that a packet may stay: a run that is full (runPackets), and what is to be written to all receivers (burstWrites).
//
//	10 receivers: 43 packets each, 430 × 0.35 = 150 µs for sealing and 430 × 0.55 = 240 µs for sending: the last one has left after 390 µs
//	50 receivers: 11 packets each, 550 × 0.35 = 190 µs for sealing and 550 × 0.95 = 520 µs for sending: the last one has left after 710 µs
//
// Audio, which is queued ahead of all else, has left by then, too.
//
// runPackets: the 64 kB of a segmented send hold 43 packets of 1,500 bytes, so a peer has room for as many whatever
// their size, and does not cut the run by sending before. Longer runs save next to nothing: 50 packets are at 0.54 µs.
const runPackets = 43

// outbox sends what a writer has queued on the peers of its receivers, and measures how long the packets have stayed.
type outbox struct {
	time  *reading
	batch Batch
	// unsent are the peers that have something queued.
	unsent []*run
	// arrived has one entry for each packet that is queued and not sent: when it came, or was intended to leave if that
	// is later, in nanoseconds since the engine's start.
	arrived   []int64
	residence *trace.Durations
	// writes counts packets queued, and packets sent, since the writer rested last.
	writes int
}

// run is what one peer has been given since its last Post.
type run struct {
	peer Peer
	// packets is how many, and place is where the run stands among the unsent while there are any.
	packets, place int
}

// queued notes that a peer has been given a packet.
func (o *outbox) queued(r *run) {
	if r.packets == 0 {
		r.place = len(o.unsent)
		o.unsent = append(o.unsent, r)
	}
	if r.packets++; r.packets == runPackets {
		o.flush(r)
	}
}

// depart flushes the peer of a receiver that has been served. What the receiver is sent may wait for what the next ones
// are.
func (o *outbox) depart(r *run) {
	if r.packets > 0 {
		o.flush(r)
	}
	o.time.read()
	if o.batch.Empty() {
		o.departed()
	}
}

// dispatch sends what waits in the batch, and counts what has been sent.
func (o *outbox) dispatch() {
	if o.batch.Empty() && len(o.arrived) == 0 {
		return
	}
	o.batch.Send()
	o.time.read()
	o.departed()
}

// departed counts how long the packets have stayed that have been sent by now.
func (o *outbox) departed() {
	for _, since := range o.arrived {
		o.residence.Observe(o.time.at-time.Duration(since), 1)
	}
	o.arrived = o.arrived[:0]
}

// flush takes a peer off the list of the unsent and sends what it has been given.
func (o *outbox) flush(r *run) {
	last := len(o.unsent) - 1
	moved := o.unsent[last]
	o.unsent[r.place], moved.place = moved, r.place
	o.unsent[last] = nil
	o.unsent = o.unsent[:last]
	o.send(r)
}

// flushAll sends what all peers have been given, that of the first one first.
func (o *outbox) flushAll() {
	for i, r := range o.unsent {
		o.unsent[i] = nil
		o.send(r)
	}
	o.unsent = o.unsent[:0]
	o.dispatch()
}

// send flushes a peer, open or closed. Sending takes time like queueing.
func (o *outbox) send(r *run) {
	o.writes += r.packets
	r.packets = 0
	r.peer.Post(o.batch)
}

// reading is a writer's last reading of the clock, not much more than a run of packets old.
type reading struct {
	clock *packetlog.Clock
	now   time.Time
	// at is the same since the engine's start.
	at time.Duration
}

// read reads the clock for what follows.
func (t *reading) read() {
	t.now = t.clock.Now()
	t.at = t.now.Sub(t.clock.Started())
}
