package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

// drained is the number of the node that drains, and drains the number of times.
const drained, drains = 2, 3

// drain has one of three nodes drain repeatedly, and counts the frames of all participants.
func drain(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	count := drains
	if b.short {
		count = 1
	}
	b.progress.Say("one of three nodes drains, %d times", count)
	n, err := newNodes(ctx, b, setup{nodes: 3, arguments: unhurried})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	r := &room{nodes: n}
	if err := r.fill(ctx); err != nil {
		return nil, err
	}
	var gap time.Duration
	var took lab.Distribution
	for i := range count {
		if err := r.awaitFrames(ctx, 10); err != nil {
			return nil, err
		}
		r.resetGaps()
		began := time.Now()
		if err := n.terminate(ctx, drained); err != nil {
			return nil, err
		}
		took.Add(time.Since(began))
		if err := r.awaitFrames(ctx, 10); err != nil {
			return nil, err
		}
		longest := r.longestGap()
		gap = max(gap, longest)
		b.progress.Say("  %d: drained after %.1f s, longest time between two frames %.0f ms", i+1,
			time.Since(began).Seconds(), lab.Milliseconds(longest))
		if err := n.start(ctx, drained, n.program); err != nil {
			return nil, err
		}
		if err := n.awaitMembers(ctx); err != nil {
			return nil, err
		}
		if err := r.refill(ctx); err != nil {
			return nil, err
		}
	}
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	lost, received := r.lost(everyone)
	return []claim.Line{
		claim.Exactly(fmt.Sprintf("drain: frames lost of %d", lost+received), lost, "", 0),
		claim.AtMost("drain: longest time between two frames of a tile, beyond the interval", lab.Milliseconds(gap-
			interval(body)), "ms", lab.Milliseconds(2*interval(body))),
		claim.Exactly("drain: participants whose session has ended, or who received wrong frames", r.failures(), "", 0),
		claim.Stated("drain: until the node has ended, longest", took.Max().Seconds(), "s"),
	}, nil
}

// upgrade replaces the program of each node in turn, from the previous release to this one.
func upgrade(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	const name = "rolling upgrade from the previous release"
	if b.options.Previous == "" {
		return []claim.Line{claim.Skip(name, "--previous names no program of the previous release")}, nil
	}
	b.progress.Say("a rolling upgrade of three nodes")
	n, err := newNodes(ctx, b, setup{nodes: 3, arguments: unhurried, program: b.options.Previous})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	present, err := b.program()
	if err != nil {
		return nil, err
	}
	r := &room{nodes: n}
	if err := r.fill(ctx); err != nil {
		return nil, err
	}
	var gap time.Duration
	for i := range n.all {
		if err := r.awaitFrames(ctx, 10); err != nil {
			return nil, err
		}
		r.resetGaps()
		if err := n.terminate(ctx, i); err != nil {
			return nil, err
		}
		if err := r.awaitFrames(ctx, 10); err != nil {
			return nil, err
		}
		gap = max(gap, r.longestGap())
		if err := n.start(ctx, i, present); err != nil {
			return nil, err
		}
		if err := n.awaitMembers(ctx); err != nil {
			return nil, err
		}
	}
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	lost, received := r.lost(everyone)
	return []claim.Line{
		claim.Exactly(fmt.Sprintf("%s: frames lost of %d", name, lost+received), lost, "", 0),
		claim.AtMost(name+": longest time between two frames of a tile, beyond the interval",
			lab.Milliseconds(gap-interval(body)), "ms", lab.Milliseconds(2*interval(body))),
		claim.Exactly(name+": participants whose session has ended, or who received wrong frames", r.failures(), "", 0),
	}, nil
}

// refill has further participants join at the drained node, whose former ones are at other nodes.
func (r *room) refill(ctx context.Context) error {
	for range eachNode {
		if _, err := r.attend(ctx, drained, body); err != nil {
			return err
		}
	}
	return nil
}

// fill adds the participants of all nodes.
func (r *room) fill(ctx context.Context) error {
	for i := range r.nodes.all {
		for range eachNode {
			if _, err := r.attend(ctx, i, body); err != nil {
				return err
			}
		}
	}
	return nil
}

// resetGaps begins to measure longestGap.
func (r *room) resetGaps() {
	for _, a := range r.all {
		a.ResetGaps()
	}
}

// longestGap returns the longest time between two frames of a tile since resetGaps.
func (r *room) longestGap() (longest time.Duration) {
	for _, a := range r.all {
		for _, tile := range r.tiles(a) {
			longest = max(longest, a.Tile(tile).LongestGap)
		}
	}
	return longest
}
