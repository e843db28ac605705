package control

import (
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/netem"
)

// incoming is a frame that is being received.
type incoming struct {
	first    time.Duration // arrival of its first packet
	captured time.Duration
	seen     []uint64 // fragments, one bit each
	missing  []int    // by block: number of fragments missing for decoding
	blocks   int      // that cannot be decoded yet
}

// nack is the default NACK configuration.
var nack = feedback.DefaultConfig().NACK

// track is the receiver's state of one tile.
type track struct {
	nacks    *feedback.NACKGenerator
	lateness *feedback.Lateness
	frames   map[int64]*incoming
	oldest   int64 // lower frame numbers are forgotten
}

// receiver accepts packets, sends NACKs for missing packets, and reports arrivals.
type receiver struct {
	id       uint64
	rtt      time.Duration
	tracks   [tiles]*track
	arrivals arrivals
	// back is the link of the reports, and flow the number of their flow there.
	back   *netem.Link
	flow   uint64
	ledger *ledger
	ask    []int64
	lost   []int64
}

func newReceiver(id uint64, o *Options, back *netem.Link, l *ledger) *receiver {
	r := &receiver{id: id, flow: id, rtt: o.RTT, arrivals: newArrivals(o.Feedback), back: back, ledger: l}
	for t := range r.tracks {
		r.tracks[t] = &track{nacks: feedback.NewNACKGenerator(nack), lateness: feedback.NewLateness(clockRate),
			frames: make(map[int64]*incoming)}
	}
	return r
}

// take handles a packet that has arrived.
func (r *receiver) take(p *netem.Packet, now time.Duration) {
	h := unmarshalHeader(p.Payload)
	r.arrivals.received(&h, p.Size, p.ECN, now)
	r.ledger.arrived(p.ECN, now)
	if h.kind == feedback.Probe {
		return
	}
	t := r.tracks[h.tile]
	t.nacks.Received(h.sequence, at(now))
	if h.kind == feedback.Media || h.kind == feedback.Parity {
		t.lateness.Received(h.sequence, timestamp(h.captured), at(now))
	}
	if h.index < h.source {
		// The number of planned parity packets is known to the sender only.
		t.nacks.Expect(h.sequence+int64(h.source)-1-int64(h.index), at(now))
	}
	t.assemble(r, &h, p.Size, now)
}

// assemble adds a fragment to its frame.
func (t *track) assemble(r *receiver, h *header, size int, now time.Duration) {
	if h.frame < t.oldest {
		return
	}
	f := t.frames[h.frame]
	if f == nil {
		f = newIncoming(h, now)
		t.frames[h.frame] = f
	}
	word, bit := h.index/64, uint64(1)<<(h.index%64)
	if f.seen[word]&bit != 0 || f.blocks == 0 {
		return
	}
	f.seen[word] |= bit
	block := int(h.index) % len(f.missing)
	if h.index >= h.source {
		block = int(h.index-h.source) % len(f.missing)
	}
	if f.missing[block]--; f.missing[block] != 0 {
		return
	}
	if f.blocks--; f.blocks > 0 {
		return
	}
	if _, deadline := nack.Repair(r.rtt, r.late()); now-f.first <= deadline {
		r.ledger.complete(int64(h.tile), h.frame, now)
	}
}

// late returns the largest recent delay of packets in addition to the path's usual delay.
func (r *receiver) late() time.Duration {
	late := time.Duration(0)
	for _, t := range r.tracks {
		late = max(late, t.lateness.Longest())
	}
	return late
}

func newIncoming(h *header, now time.Duration) *incoming {
	blocks := (int(h.source) + blockSize - 1) / blockSize
	f := &incoming{first: now, captured: h.captured, seen: make([]uint64, (int(h.source)+int(h.parity)+63)/64),
		missing: make([]int, blocks), blocks: blocks}
	for i := range int(h.source) {
		f.missing[i%blocks]++
	}
	return f
}

// next returns the time when run is due.
func (r *receiver) next() time.Duration {
	next := r.arrivals.next()
	for _, t := range r.tracks {
		if due := t.nacks.Next(); !due.IsZero() {
			next = min(next, due.Sub(epoch))
		}
	}
	return next
}

// run sends the NACKs and the arrival reports that are due.
func (r *receiver) run(now time.Duration) {
	for number, t := range r.tracks {
		if due := t.nacks.Next(); due.IsZero() || due.After(at(now)) {
			continue
		}
		t.nacks.Late(r.late())
		r.ask, r.lost = t.nacks.Due(at(now), r.rtt, r.ask[:0], r.lost[:0])
		for _, compound := range feedback.Compounds(feedback.AppendNACKs(nil, reporter, uint32(number), r.ask)) {
			packets, err := rtcp.Marshal(compound)
			if err != nil {
				panic("control: requests cannot be written: " + err.Error())
			}
			r.send(packets, now)
		}
		t.forget(now - time.Second)
	}
	for {
		compound := r.arrivals.report(now)
		if len(compound) == 0 {
			return
		}
		r.send(compound, now)
	}
}

func (r *receiver) send(compound []byte, now time.Duration) {
	r.back.Send(&netem.Packet{Payload: compound, Size: len(compound) + reportOverhead, Flow: r.flow}, at(now))
}

// forget removes frames whose first packet arrived before a time.
func (t *track) forget(before time.Duration) {
	for number, f := range t.frames {
		if f.first < before {
			delete(t.frames, number)
			t.oldest = max(t.oldest, number+1)
		}
	}
}
