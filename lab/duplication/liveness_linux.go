package duplication

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/traffic"
)

// outageTime is the time for which the primary path is dead.
const outageTime = time.Second

// primaryDead measures the packets that a pair loses when its primary path is dead for a second: with copies on all
// paths, and with copies that trouble starts.
func primaryDead(ctx context.Context, b *bench) ([]claim.Line, error) {
	outages := 10
	if b.short {
		outages = 1
	}
	lines, err := outagesWithAll(ctx, b, outages)
	if err != nil {
		return lines, err
	}
	more, err := outagesWithAuto(ctx, b, outages)
	return append(lines, more...), err
}

// outagesOf returns a network of three paths, whose first is dead for outageTime several times, and the times.
func outagesOf(count int, interval time.Duration) (t *topology.Topology, begins []time.Duration, end time.Duration) {
	t = parallel(20*time.Millisecond, 30*time.Millisecond, 35*time.Millisecond)
	link := t.Links[pathName(0)]
	dead := link.Forth.Config
	dead.Loss = 1
	for i := range count {
		begin := learning + time.Duration(i)*interval
		begins = append(begins, begin)
		for _, d := range []*topology.Direction{&link.Forth, &link.Back} {
			d.Schedule = append(d.Schedule, topology.Change{At: begin, Config: dead},
				topology.Change{At: begin + outageTime, Config: d.Config})
		}
	}
	t.Links[pathName(0)] = link
	return t, begins, learning + time.Duration(count)*interval
}

// outaged is the result of a run with outages.
type outaged struct {
	packets []traffic.Datagram
	changes changes
	late    []claim.Line
	// plain is the number of packets that the edges sent without copies.
	plain uint64
}

// runOutages runs a pair during the outages.
func runOutages(ctx context.Context, b *bench, t *topology.Topology, copies string, end time.Duration) (o outaged,
	err error) {
	b.progress.Say("outages of the primary path with the copies %s, for %v", copies, end)
	s, err := openStage(ctx, b, t, copies, 50*time.Millisecond, nil)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	before, err := s.plain(ctx)
	if err != nil {
		return o, err
	}
	if err := s.until(ctx, end); err != nil {
		return o, err
	}
	if o.packets, err = s.packets(); err != nil {
		return o, err
	}
	after, err := s.plain(ctx)
	o.changes, o.late, o.plain = s.changes.since(s.began), s.lateness(), after-before
	return o, err
}

// outagesWithAll measures copies on all paths, again if packets left without copies meanwhile: see whileCopying. With
// two paths alive, only a machine that is too busy makes an edge believe that the other one is gone.
func outagesWithAll(ctx context.Context, b *bench, outages int) ([]claim.Line, error) {
	t, _, end := outagesOf(outages, 3*time.Second)
	for range copyingAttempts {
		o, err := runOutages(ctx, b, t, "all", end)
		if err != nil {
			return nil, err
		}
		if o.plain == 0 {
			return append(intact(fmt.Sprintf("copies all, %d outages", outages), o.packets), o.late...), nil
		}
		b.progress.Say("  again: %d packets left without copies", o.plain)
	}
	return nil, errTooBusy
}

// intact returns the lines of a run in which every packet has to arrive once.
func intact(what string, packets []traffic.Datagram) []claim.Line {
	lost, repeated := traffic.Tally(packets)
	return []claim.Line{
		claim.Exactly(fmt.Sprintf("%s: packets lost, of %d", what, len(packets)), int64(len(lost)), "", 0),
		claim.Exactly(what+": packets repeated", int64(len(repeated)), "", 0),
	}
}

// outagesWithAuto measures copies that trouble starts.
func outagesWithAuto(ctx context.Context, b *bench, outages int) ([]claim.Line, error) {
	t, begins, end := outagesOf(outages, outageTime+quietTime)
	o, err := runOutages(ctx, b, t, "auto", end)
	if err != nil {
		return nil, err
	}
	packets := o.packets
	var onsets starts
	var gap time.Duration
	most, after := 0, 0
	for _, begin := range begins {
		start := onsets.add(o.changes, begin, outageTime)
		before := 0
		for i := range packets {
			switch p := &packets[i]; {
			case p.Copies > 0 || p.Sent < begin || p.Sent >= begin+outageTime+quietTime:
			case p.Sent < begin+start:
				before++
			default:
				after++
			}
		}
		most = max(most, before)
		gap = max(gap, longestGap(packets, begin-time.Second, begin+2*outageTime))
	}
	lines := []claim.Line{
		claim.Stated(fmt.Sprintf("copies auto, %d outages: packets lost before copies start, most per outage", outages),
			float64(most), ""),
		claim.Stated("copies auto: packets lost afterwards, all outages", float64(after), ""),
		claim.Stated("copies auto: from the outage to copies, p50", percentile(&onsets.Distribution, 0.5), "ms"),
		claim.Stated("copies auto: from the outage to copies, longest", percentile(&onsets.Distribution, 1), "ms"),
		claim.Stated("copies auto: outages at which copies were on already", float64(onsets.copying), ""),
		claim.Stated("copies auto: longest time without an arrival", lab.Milliseconds(gap), "ms"),
	}
	return append(lines, o.late...), nil
}

// longestGap returns the longest time between two arrivals of packets that were sent between two times.
func longestGap(packets []traffic.Datagram, from, to time.Duration) (longest time.Duration) {
	last := time.Duration(0)
	for i := range packets {
		p := &packets[i]
		if p.Copies == 0 || p.Sent < from || p.Sent >= to {
			continue
		}
		if last > 0 {
			longest = max(longest, p.Arrived-last)
		}
		last = max(last, p.Arrived)
	}
	return longest
}
