package egress

import (
	"time"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/trace"
)

// runPackets is the maximum number of packets that are queued on one peer before they are sent.
//
// A peer sends its queued packets in runs of packets of one size, with one system call per run. Longer runs cost less
// per packet (measured on one core, in addition to 0.35 µs for sealing):
//
//	packets in the run      1     5    10    16    43
//	µs per packet sent    4.5   1.6   1.0  0.75  0.55
//
// A writer therefore takes all available packets as one burst and serves one receiver after the other, so that a burst
// that its reader signalled at once leaves as one run per receiver. For 16 packets from a publisher's pacer to 10
// receivers, the packets of the first receiver have left after 16 × (0.35 + 0.75) = 18 µs and the packets of the last
// after 176 µs. Sent one by one they would take 776 µs.
//
// If packets are always available, two bounds end a burst and keep the last packet's residence below the limit of one
// millisecond: a full run (runPackets) and the number of packets to all receivers (burstWrites).
//
//	receivers  packets each  sealing               sending               last packet sent after
//	10         43            430 × 0.35 = 150 µs   430 × 0.55 = 240 µs   390 µs
//	50         11            550 × 0.35 = 190 µs   550 × 0.95 = 520 µs   710 µs
//
// Audio is queued ahead of all other packets and has left by then, too.
//
// The 64 kB of a segmented send hold 43 packets of 1,500 bytes. A peer therefore has room for runPackets packets of any
// size and does not split the run by sending early. Longer runs save next to nothing: at 50 packets the cost is 0.54
// µs.
const runPackets = 43

// outbox sends the packets that a writer has queued on the peers of its receivers, and measures their residence.
type outbox struct {
	time  *reading
	batch Batch
	// unsent are the peers with queued packets.
	unsent []*run
	// arrived has one entry per packet that is queued and not sent: the time of its arrival, or its intended departure
	// if that is later, in nanoseconds since the engine's start.
	arrived   []int64
	residence *trace.Durations
	// writes counts packets queued plus packets sent, since the writer last rested.
	writes int
}

// run is the state of one peer since its last Post.
type run struct {
	peer Peer
	// packets is the number of queued packets. place is the index of the run in unsent, valid if packets is above 0.
	packets, place int32
}

// queued counts a packet that was queued on a peer.
func (o *outbox) queued(r *run) {
	if r.packets == 0 {
		r.place = int32(len(o.unsent))
		o.unsent = append(o.unsent, r)
	}
	if r.packets++; r.packets == runPackets {
		o.flush(r)
	}
}

// depart flushes the peer of a receiver that has been served. Packets in the batch may wait for the next receivers.
func (o *outbox) depart(r *run) {
	if r.packets > 0 {
		o.flush(r)
	}
	o.time.read()
	if o.batch.Empty() {
		o.departed()
	}
}

// dispatch sends the packets in the batch and measures their residence.
func (o *outbox) dispatch() {
	if o.batch.Empty() && len(o.arrived) == 0 {
		return
	}
	o.batch.Send()
	o.time.read()
	o.departed()
}

// departed measures the residence of the packets that have been sent.
func (o *outbox) departed() {
	for _, since := range o.arrived {
		o.residence.Observe(o.time.at-time.Duration(since), 1)
	}
	o.arrived = o.arrived[:0]
}

// flush removes a peer from unsent and posts its packets.
func (o *outbox) flush(r *run) {
	last := len(o.unsent) - 1
	moved := o.unsent[last]
	o.unsent[r.place], moved.place = moved, r.place
	o.unsent[last] = nil
	o.unsent = o.unsent[:last]
	o.send(r)
}

// flushAll posts the packets of all peers, oldest peer first, and sends the batch.
func (o *outbox) flushAll() {
	for i, r := range o.unsent {
		o.unsent[i] = nil
		o.send(r)
	}
	o.unsent = o.unsent[:0]
	o.dispatch()
}

// send posts the packets of a peer, open or closed. Sending counts as work like queueing.
func (o *outbox) send(r *run) {
	o.writes += int(r.packets)
	r.packets = 0
	r.peer.Post(o.batch)
}

// reading is a writer's last clock reading, little older than a run of packets.
type reading struct {
	clock *packetlog.Clock
	now   time.Time
	// at is now as time since the engine's start.
	at time.Duration
}

// read reads the clock.
func (t *reading) read() {
	t.now = t.clock.Now()
	t.at = t.now.Sub(t.clock.Started())
}
