package duplication

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/daemon"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment/paper003"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/traffic"
)

// The targets of claim 7.
const (
	startTarget  = 100 * time.Millisecond // p95
	leaveTarget  = 300 * time.Millisecond
	returnTarget = 2 * time.Second
)

const (
	// learning is the time before the first disturbance: path control then knows all paths.
	learning = 5 * time.Second
	// varyingTime is the length of most variations, and paperTime that of the paper's.
	varyingTime = 4 * time.Second
	paperTime   = 40 * time.Second
	// quietTime is the time between two variations. A return or a reduction of less than 10 s ago that proves wrong
	// doubles waiting times; the variations are independent.
	quietTime = 14 * time.Second
)

// variations returns the plan of a run: both kinds of variation in turn, and two of the paper's length.
func variations(short bool) (plan []paper003.Variation, end time.Duration) {
	count, lengths := 24, []time.Duration{paperTime, paperTime}
	if short {
		count, lengths = 2, nil
	}
	for range count {
		lengths = append([]time.Duration{varyingTime}, lengths...)
	}
	at := learning
	for i, length := range lengths {
		kind := []string{paper003.VariationPacket, paper003.VariationDrift}[i%2]
		plan = append(plan, paper003.Variation{Kind: kind, Begin: at, End: at + length})
		at += length + quietTime
	}
	return plan, at
}

// reaction measures path control on the paths of table I, while their delays begin and cease to vary.
func reaction(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	plan, end := variations(b.short)
	b.progress.Say("table I with %d variations, for %v", len(plan), end)
	s, err := openStage(ctx, b, paper003.Layout(plan, 1), "auto", paper003.Deadline, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.until(ctx, end); err != nil {
		return nil, err
	}
	status, err := s.pair.Status(ctx, server)
	if err != nil {
		return nil, err
	}
	packets, err := s.packets()
	if err != nil {
		return nil, err
	}
	list := s.changes.since(s.began)
	lines = judgeStarts(list, plan, packets)
	lines = append(lines, judgeLeaves(list, plan, end)...)
	lines = append(lines, judgeReturns(list, plan)...)
	lost, _ := traffic.Tally(packets)
	lines = append(lines,
		claim.Stated(fmt.Sprintf("packets lost, of %d", len(packets)), float64(len(lost)), ""),
		claim.Stated("packets on all paths per packet, over the whole run", status.Sent.CostFactor, ""))
	return append(lines, s.lateness()...), nil
}

// judgeStarts judges how soon copies start after the onsets of variations.
func judgeStarts(list changes, plan []paper003.Variation, packets []traffic.Datagram) []claim.Line {
	var onsets starts
	var late lab.Distribution
	for _, v := range plan {
		before := onsets.Count()
		after := onsets.add(list, v.Begin, v.End-v.Begin)
		if onsets.Count() > before {
			// The first path has 20 ms. Packets are late if they arrive later than the deadline above that.
			late.Add(max(0, v.Begin+after-firstLate(packets, v, 20*time.Millisecond+paper003.Deadline)))
		}
	}
	return []claim.Line{
		claim.AtMost(fmt.Sprintf("from the onset of a variation to copies, p95 of %d", onsets.Count()),
			percentile(&onsets.Distribution, 0.95), "ms", lab.Milliseconds(startTarget)),
		claim.Stated("from the onset of a variation to copies, p50", percentile(&onsets.Distribution, 0.5), "ms"),
		claim.Stated("from the onset of a variation to copies, longest", percentile(&onsets.Distribution, 1), "ms"),
		claim.Stated("from the first late packet to copies, p95", percentile(&late, 0.95), "ms"),
		claim.Stated("onsets at which copies were on already", float64(onsets.copying), ""),
	}
}

// percentile returns a percentile in milliseconds, NaN without values.
func percentile(d *lab.Distribution, share float64) float64 {
	if d.Count() == 0 {
		return math.NaN()
	}
	return lab.Milliseconds(d.Percentile(share))
}

// firstLate returns when the first packet of a variation was sent that is lost or arrives later than a limit, the end
// of the variation without such a packet.
func firstLate(packets []traffic.Datagram, v paper003.Variation, limit time.Duration) time.Duration {
	for i := range packets {
		p := &packets[i]
		if p.Sent >= v.Begin && p.Sent < v.End && (p.Copies == 0 || p.Arrived-p.Sent > limit) {
			return p.Sent
		}
	}
	return v.End
}

// judgeLeaves judges for how long the paths 3 and 4, whose delay is useless, are in the set.
func judgeLeaves(list changes, plan []paper003.Variation, end time.Duration) []claim.Line {
	joined, longest := 0, time.Duration(0)
	for _, path := range []int{2, 3} {
		for _, stay := range list.stays(path, plan[0].Begin, end) {
			joined++
			longest = max(longest, stay)
		}
	}
	return []claim.Line{
		claim.AtMost("paths 3 and 4 in the set, longest", lab.Milliseconds(longest), "ms",
			lab.Milliseconds(leaveTarget)),
		claim.Stated("times that path 3 or 4 has joined the set", float64(joined), ""),
	}
}

// judgeReturns judges how soon path 1 returns after variations.
func judgeReturns(list changes, plan []paper003.Variation) []claim.Line {
	var returns lab.Distribution
	for _, v := range plan {
		if after, outside := list.returned(0, v.End, quietTime); outside {
			returns.Add(after)
		}
	}
	return []claim.Line{
		claim.AtMost(fmt.Sprintf("path 1 returns after its recovery, longest of %d", returns.Count()),
			percentile(&returns, 1), "ms", lab.Milliseconds(returnTarget)),
		claim.Stated("path 1 returns after its recovery, p95", percentile(&returns, 0.95), "ms"),
		claim.Stated("path 1 returns after its recovery, p50", percentile(&returns, 0.5), "ms"),
	}
}

// unknownPaths measures how soon the paths 3 and 4 leave if nothing is known of them when copies start: an edge that
// follows one that has died while it copied uses all paths.
func unknownPaths(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	repetitions := 10
	if b.short {
		repetitions = 1
	}
	b.progress.Say("an edge that copies dies, and the next one knows no path: %d times", repetitions)
	s, err := openStage(ctx, b, paper003.Layout(nil, 1), "auto", paper003.Deadline, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var stays lab.Distribution
	for range repetitions {
		if err := wait(ctx, learning); err != nil {
			return nil, err
		}
		if err := s.pair.Run(ctx, server, "set", "all", "start"); err != nil {
			return nil, err
		}
		s.pair.KillEdge(server)
		from := time.Since(s.began)
		if err := s.pair.StartEdge(ctx, server); err != nil {
			return nil, err
		}
		if err := s.pair.Await(ctx, server, "has removed the useless paths", func(state *daemon.Status) bool {
			return len(state.Rules[0].Set) == 1 && state.PeerAlive
		}); err != nil {
			return nil, err
		}
		for _, path := range []int{2, 3} {
			stays.Add(s.changes.since(s.began).stays(path, from, time.Since(s.began))...)
		}
	}
	longest := lab.Milliseconds(stays.Max())
	if stays.Count() < 2*repetitions {
		longest = math.NaN()
	}
	return []claim.Line{
		claim.AtMost(fmt.Sprintf("paths 3 and 4 in the set of an edge that knows no path, longest of %d",
			stays.Count()), longest, "ms", lab.Milliseconds(leaveTarget)),
		claim.Stated("paths 3 and 4 in the set of an edge that knows no path, p50", percentile(&stays, 0.5), "ms"),
	}, nil
}
