package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

const (
	// failing is the number of the node that fails.
	failing = 2
	// eachNode is the number of participants of each node.
	eachNode = 2
	// kills, stops and cuts are the numbers of failures of each kind.
	kills, stops, cuts = 20, 3, 3
	// returnPatience is the time for frames to return after a failure. The participants that have none then are
	// counted with this time.
	returnPatience = 10 * time.Second
)

// failure is a way in which a node fails.
type failure struct {
	name string
	// begin makes the node fail, and end makes it work again.
	begin, end func(context.Context, *nodes) error
	// longest and median are the targets for the time without frames; 0 is none.
	longest, median time.Duration
	count           int
}

// failureKinds are the ways of the claim.
var failureKinds = []failure{
	{name: "kill -9", count: kills, longest: 1500 * time.Millisecond, median: 800 * time.Millisecond,
		begin: func(_ context.Context, n *nodes) error { n.kill(failing); return nil },
		end:   func(ctx context.Context, n *nodes) error { return n.start(ctx, failing, n.program) }},
	{name: "SIGSTOP", count: stops, longest: 2500 * time.Millisecond,
		begin: func(_ context.Context, n *nodes) error { return n.signal(failing, syscall.SIGSTOP) },
		end:   func(_ context.Context, n *nodes) error { return n.signal(failing, syscall.SIGCONT) }},
	{name: "cut cable", count: cuts, longest: 2500 * time.Millisecond,
		begin: func(_ context.Context, n *nodes) error { return n.plugBoth(failing, false) },
		end:   func(_ context.Context, n *nodes) error { return n.plugBoth(failing, true) }},
}

// plugBoth connects or cuts both cables of a node.
func (n *nodes) plugBoth(number int, connected bool) error {
	return errors.Join(n.network.plugIn(forClients, number, connected), n.network.plugIn(forNodes, number, connected))
}

// failures has one of three nodes fail repeatedly.
func failures(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	for _, f := range failureKinds {
		if b.short {
			f.count = 1
		}
		more, err := f.measure(ctx, b)
		lines = append(lines, more...)
		if err != nil {
			return lines, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return lines, nil
}

// measure has the node fail, and have it work again with new participants, count times.
func (f failure) measure(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	b.progress.Say("%s of one of three nodes, %d times", f.name, f.count)
	n, err := newNodes(ctx, b, setup{nodes: 3, arguments: unhurried})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	r := &room{nodes: n}
	var observers []observer
	for i := range n.all {
		for range eachNode {
			if _, err := r.attend(ctx, i, body); err != nil {
				return nil, err
			}
		}
		if i != failing {
			o, err := n.observe(ctx, i)
			if err != nil {
				return nil, err
			}
			defer o.Close()
			observers = append(observers, o)
		}
	}
	var without lab.Distribution
	var offers, left, resumed int
	for i := range f.count {
		if err := r.awaitFrames(ctx, 10); err != nil {
			return nil, err
		}
		offers, left = offers-sumOffers(observers), left-sumLeft(observers)
		began := time.Now()
		if err := f.begin(ctx, n); err != nil {
			return nil, err
		}
		times := r.without(ctx, began)
		if err := lab.Pause(ctx, time.Second); err != nil {
			return nil, err
		}
		offers, left = offers+sumOffers(observers), left+sumLeft(observers)
		without.Join(&times)
		b.progress.Say("  %d: frames of every tile after %.2f s at most, %.2f s in the median", i+1,
			times.Max().Seconds(), times.Percentile(0.5).Seconds())
		if err := f.end(ctx, n); err != nil {
			return nil, err
		}
		for _, a := range r.all {
			if a.node == failing {
				resumed += min(1, a.Count("resumed"))
			}
		}
		if err := r.replace(ctx); err != nil {
			return nil, err
		}
	}
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	lost, received := r.lost(func(receiver, publisher *attendee) bool {
		return receiver.node != failing && publisher.node != failing
	})
	name := f.name + ": "
	lines = []claim.Line{claim.AtMost(fmt.Sprintf("%sparticipants without frames of a tile, longest of %d", name,
		without.Count()), without.Max().Seconds(), "s", f.longest.Seconds())}
	if f.median > 0 {
		lines = append(lines, claim.AtMost(name+"participants without frames of a tile, p50",
			without.Percentile(0.5).Seconds(), "s", f.median.Seconds()))
	}
	return append(lines,
		claim.Exactly(name+"participants of the node that have not resumed",
			int64(f.count*eachNode-resumed), fmt.Sprintf("of %d", f.count*eachNode), 0),
		claim.Exactly(fmt.Sprintf("%sframes between the other nodes lost, of %d", name, lost+received), lost, "", 0),
		claim.Exactly(name+"offers to others", int64(offers), "", 0),
		claim.Exactly(name+"participant_left to others", int64(left), "", 0)), nil
}

func sumOffers(list []observer) (sum int) {
	for _, o := range list {
		offers, _ := o.notices()
		sum += offers
	}
	return sum
}

func sumLeft(list []observer) (sum int) {
	for _, o := range list {
		_, left := o.notices()
		sum += left
	}
	return sum
}

// without waits until every participant has received a frame, captured since a time, of every tile. It returns the
// time of each participant until then.
func (r *room) without(ctx context.Context, since time.Time) (times lab.Distribution) {
	ctx, cancel := context.WithTimeout(ctx, returnPatience)
	defer cancel()
	// The capture times are estimates; the frames of the preceding moment count for none.
	captured := since.Add(10 * time.Millisecond)
	after := make([]time.Duration, len(r.all))
	_ = testbed.Await(ctx, "every participant has frames of every tile", func() bool {
		whole := true
		for i, a := range r.all {
			if after[i] == 0 {
				after[i] = a.returned(r.tiles(a), since, captured)
				whole = whole && after[i] > 0
			}
		}
		return whole
	})
	for _, d := range after {
		if d == 0 {
			d = returnPatience
		}
		times.Add(d)
	}
	return times
}

// returned returns the time from since until a frame of each of the tiles that was captured later had arrived, 0 if
// one has none.
func (a *attendee) returned(tiles []volumetric.TileRef, since, captured time.Time) (longest time.Duration) {
	first := make(map[volumetric.TileRef]time.Duration)
	for _, arrival := range slices.Backward(a.Arrivals()) {
		if arrival.Complete.Before(since) {
			break
		}
		if arrival.Capture.After(captured) {
			first[arrival.Track.TileRef] = arrival.Complete.Sub(since)
		}
	}
	for _, tile := range tiles {
		if first[tile] == 0 {
			return 0
		}
		longest = max(longest, first[tile])
	}
	return longest
}

// replace has the participants of the failing node leave, and as many others join there.
func (r *room) replace(ctx context.Context) error {
	r.all = slices.DeleteFunc(r.all, func(a *attendee) bool {
		if a.node == failing {
			a.Leave()
		}
		return a.node == failing
	})
	if err := r.nodes.awaitMembers(ctx); err != nil {
		return err
	}
	for range eachNode {
		if _, err := r.attend(ctx, failing, body); err != nil {
			return err
		}
	}
	return nil
}
