package client

import (
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// frameSlack is how far frames may be ahead of the estimate together: it lets the estimate dip for three frames at 30 per second before any is left out.
	frameSlack = 100 * time.Millisecond
	// slack is how long the rate is saved up: what leaves at one late tick.
	slack = 5 * time.Millisecond
	// earlySlack is how long that is saved up: sleeps of a tick take up to 1.1 ms longer where timers are no better.
	earlySlack = 2 * tick
	// turnPackets is how many packets wait for each other, for minTurn at least and maxTurn at most. Longer runs save little more; shorter turns wake the server and this process more often than that is worth.
	// A server that has 10 receivers needs some 200 µs for what comes at a time, and half of that is what the median packet waits there: beyond 240 Mbit/s turns of minTurn bring more.
	turnPackets      = 16
	minTurn, maxTurn = tick / 4, 4 * tick
	// maxDebt is for how long retransmissions and audio, which do not wait, can keep everything else waiting.
	maxDebt = 500 * time.Millisecond
	// foreignBudget is how long frames of real video wait: each that is left out costs all up to the next key frame.
	foreignBudget = 500 * time.Millisecond
)

// pacer spreads the packets of frames over time, within the rate of the uplink. It is stepped with now and belongs to media's lock.
//
// Frames are numbered when they begin to leave, so that one that is left out leaves no gap. Packets leave evenly over their frame's spread, or at the estimate where
// that is sooner and little of it is used, which makes no queue. As on the server they leave no faster than pacing.Path.Factor allows, and frames begin as long as all before them
// have not taken more than the estimate. One that has waited for longer than its budget by then is left out whole.
type pacer struct {
	frames []pacedFrame
	// left are frames that were left out since somebody looked.
	left []ownTrack

	// rate is the estimate in bytes per second, 0 without limit. credit is how many bytes may leave as of filled, and room how many bytes of frames may begin
	// to. Below 0 they are owed.
	rate, credit, room float64
	// factor is how many times the estimate frames may leave at.
	factor float64
	// lead is how many bytes may leave before their frames' spread says so, since all that has left is within the estimate: below 0 it is what waits on a path that carries just that.
	// It is kept account of while leads does not let any leave so.
	lead   float64
	leads  bool
	filled time.Time
	// round counts calls of release. ends are the last packets of frames in one.
	round uint64
	ends  []outgoing
	// short says that a frame could not begin for want of room.
	short bool
}

// pacedFrame is one frame under way: its packets leave evenly from begin on, the last at begin + spread.
type pacedFrame struct {
	frame
	// packets are nil until the frame begins to leave.
	packets []outgoing
	sent    int
	// queued is when the frame could have left first.
	queued, begin time.Time
	spread        time.Duration
	// budget is how long after queued it may begin to leave, 0 for ever.
	budget time.Duration
	// behind says that it waits for another quality of its tile, which is to leave first.
	behind bool
}

// frame is what the packets of a frame are made of.
type frame struct {
	line      *line
	publisher *Publisher
	track     int
	timestamp uint32
	// capture is by this host's clock, serverCapture the same instant by the server's.
	capture, serverCapture time.Time
	payloads               [][]byte
	// times are nil where the frame is not traced.
	times *sentTimes
}

// ownTrack is one track of a publisher.
type ownTrack struct {
	publisher *Publisher
	track     int
}

// audio tells frames that leave at once, whatever the rate.
func (f *frame) audio() bool {
	return f.publisher.publication.Kind == volumetric.KindAudio
}

// add takes a frame. An earlier frame of the same line that is still under way leaves as soon as the rate allows, so that a line's packets keep their order.
func (p *pacer) add(f pacedFrame) {
	for i := range p.frames {
		if p.frames[i].line == f.line {
			p.frames[i].begin, p.frames[i].spread = f.begin, 0
		}
	}
	f.queued = f.begin
	p.frames = append(p.frames, f)
}

// follow lets the frames of a publisher's tracks from first to before last that wait for another quality leave from begin on, after all that are under way.
func (p *pacer) follow(publisher *Publisher, first, last int, begin time.Time) {
	kept, moved := p.frames[:0], []pacedFrame(nil)
	for _, f := range p.frames {
		if f.behind && f.packets == nil && f.publisher == publisher && f.track >= first && f.track < last {
			f.queued, f.begin = begin, begin
			moved = append(moved, f)
		} else {
			kept = append(kept, f)
		}
	}
	p.frames = append(kept, moved...)
}

// limit sets what all frames share: the estimate of a path, and no limit where there is none.
func (p *pacer) limit(path pacing.Path, now time.Time) {
	p.fill(now)
	rate := float64(path.Estimate) / 8
	if p.rate == 0 {
		p.credit, p.room, p.lead, p.filled = path.Factor()*rate*slack.Seconds(), rate*frameSlack.Seconds(), 0, now
	}
	p.rate, p.factor, p.leads = rate, path.Factor(), path.Leads()
}

// fill adds what the rate has allowed since the last time.
func (p *pacer) fill(now time.Time) {
	if p.rate == 0 {
		return
	}
	passed, owed := now.Sub(p.filled).Seconds(), -p.rate*maxDebt.Seconds()
	p.credit = min(max(p.credit, p.factor*owed)+p.factor*p.rate*passed, max(1, p.factor*p.rate*slack.Seconds()))
	p.room = min(max(p.room, owed)+p.rate*passed, max(1, p.rate*frameSlack.Seconds()))
	early := min(p.rate, pacing.EarlyRate/8)
	p.lead = min(max(p.lead, owed)+early*passed, early*earlySlack.Seconds())
	p.filled = now
}

// spend accounts for a packet that leaves past the pacer.
func (p *pacer) spend(bytes int) {
	p.credit -= float64(bytes)
	p.room -= float64(bytes)
	p.lead -= float64(bytes)
}

// turn is how long after from, when it was to look last, packets that are due next may wait for each other: as long as they are few, so that runs are longer and the server wakes less often, and until their
// frame's last one is due. It is a tick where frames leave as fast as the uplink takes them, where another one begins sooner than that, and where the rate keeps back what is due. None leaves before it is due:
// the server would hold it until then.
func (p *pacer) turn(now, from time.Time) time.Duration {
	if p.leads || p.rate > 0 && p.credit <= 0 {
		return tick
	}
	turn := maxTurn
	for i := range p.frames {
		switch f := &p.frames[i]; {
		case f.leaves(now):
			turn = min(turn, max(minTurn, f.begin.Add(f.spread).Sub(from)))
		case f.begin.Before(now.Add(turn)):
			turn = min(turn, tick)
		}
	}
	packets, end := 0, from.Add(turn)
	for i := range p.frames {
		if f := &p.frames[i]; f.leaves(now) {
			packets += f.dueBy(end) - f.sent
		}
	}
	if packets > turnPackets {
		turn = max(minTurn, turn*turnPackets/time.Duration(packets))
	}
	return turn
}

// leaves tells whether a frame leaves by its spread: it has begun, and nothing keeps it back.
func (f *pacedFrame) leaves(now time.Time) bool {
	return f.packets != nil && now.Before(f.begin.Add(f.spread))
}

// due appends the packets that are to leave by now, oldest frame first.
func (p *pacer) due(now time.Time, packets []outgoing) []outgoing {
	p.fill(now)
	return p.release(now, false, packets)
}

// ahead appends packets of as many bytes, and a packet more, whether or not their frames' spread is so far: a probe takes them.
func (p *pacer) ahead(now time.Time, bytes int, packets []outgoing) []outgoing {
	p.fill(now)
	lead := p.lead
	p.credit = float64(bytes)
	packets = p.release(now, true, packets)
	p.credit, p.lead = min(p.credit, 0), lead
	return packets
}

// release appends what may leave, and keeps the frames that are not through. Frames end with a packet that is shorter than the others, and such a one ends a run: so these go last, the longest of them first.
func (p *pacer) release(now time.Time, early bool, packets []outgoing) []outgoing {
	if p.short {
		// Where there is not room for all, each track has its turn.
		slices.SortStableFunc(p.frames, byTurn)
		p.short = false
	}
	kept := p.frames[:0]
	p.round++
	for _, f := range p.frames {
		t, through := &f.publisher.tracks[f.track], false
		if t.ended == p.round {
			// Another frame of the track follows: it keeps its order.
			packets = p.takeEnds(packets)
		}
		if t.waits != p.round {
			packets, through = p.advance(&f, now, early, packets)
		}
		if !through {
			t.waits = p.round
			kept = append(kept, f)
		}
	}
	clear(p.frames[len(kept):])
	p.frames = kept
	return p.takeEnds(packets)
}

// takeEnds appends the last packets of frames.
func (p *pacer) takeEnds(packets []outgoing) []outgoing {
	slices.SortStableFunc(p.ends, func(a, b outgoing) int { return len(b.payload) - len(a.payload) })
	packets = append(packets, p.ends...)
	clear(p.ends)
	p.ends = p.ends[:0]
	return packets
}

// byTurn sorts frames that have begun before others, and these by when their track's last one began.
func byTurn(a, b pacedFrame) int {
	switch {
	case a.packets != nil && b.packets != nil:
		return 0
	case a.packets != nil:
		return -1
	case b.packets != nil:
		return 1
	}
	return a.publisher.tracks[a.track].begun.Compare(b.publisher.tracks[b.track].begun)
}

// advance appends what may leave of a frame. It tells whether nothing is left of it.
func (p *pacer) advance(f *pacedFrame, now time.Time, early bool, packets []outgoing) ([]outgoing, bool) {
	if now.Before(f.begin) {
		return packets, false
	}
	free := p.rate == 0 || f.audio()
	if f.packets == nil {
		if f.abandoned() {
			return packets, true
		}
		if !free && (p.credit <= 0 || p.room <= 0) {
			late := f.budget > 0 && now.Sub(f.queued) > f.budget
			if late {
				p.left = append(p.left, ownTrack{f.publisher, f.track})
			}
			p.short = true
			return packets, late
		}
		if !f.number() {
			return packets, true
		}
		f.publisher.tracks[f.track].begun = now
		for i := range f.packets {
			p.room -= float64(f.packets[i].size())
		}
	}
	upTo := f.dueBy(now)
	if early {
		upTo = len(f.packets)
	}
	for f.sent < len(f.packets) && (f.sent < upTo || p.rate > 0 && p.leads && p.lead > 0) && (free || p.credit > 0) {
		o := &f.packets[f.sent]
		p.credit -= float64(o.size())
		p.lead -= float64(o.size())
		f.sent++
		if f.sent == len(f.packets) && f.endsLast() {
			p.ends = append(p.ends, *o)
			f.publisher.tracks[f.track].ended = p.round
		} else {
			packets = append(packets, *o)
		}
	}
	return packets, f.sent == len(f.packets)
}

// endsLast tells whether the last packet may leave behind those of other tracks. Of codecs without payload v1 the server switches where the first packet of a key frame comes, by when the
// other quality's frame has to be through.
func (f *pacedFrame) endsLast() bool {
	return len(f.packets) > 1 && f.publisher.publication.Codec.Is(volumetric.MIMEVolumetric)
}

// abandoned tells whether the line has changed hands since.
func (f *frame) abandoned() bool { return f.line.publisher != f.publisher || f.line.track != f.track }

// number makes the frame's packets. It cannot if the line takes no such codec any more.
func (f *pacedFrame) number() bool {
	var err error
	f.packets, err = f.line.number(f.timestamp, f.capture, f.serverCapture, f.payloads)
	f.times.marked(f.packets)
	return err == nil
}

// size is what a packet takes on the wire.
func (o *outgoing) size() int { return o.header.MarshalSize() + len(o.payload) + wireOverhead }

// dueBy is how many packets of the frame are to leave by then; the first leaves at its begin.
func (f *pacedFrame) dueBy(then time.Time) int {
	packets, elapsed := len(f.packets), then.Sub(f.begin)
	if f.packets == nil {
		packets = len(f.payloads)
	}
	if elapsed >= f.spread {
		return packets
	}
	n := 1 + int(float64(packets-1)*float64(elapsed)/float64(f.spread))
	return max(n, f.sent)
}

// idle tells that nothing waits.
func (p *pacer) idle() bool { return len(p.frames) == 0 }
