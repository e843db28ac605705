package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

const (
	// spreadParticipants join over spreadNodes.
	spreadParticipants, spreadNodes = 12, 3
	// spreadFrames is the number of frames of each tile for which the room is watched, 10 s.
	spreadFrames = 100
)

// spread has participants join one room at all nodes in turn, and counts their frames.
func spread(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	participants, frames := spreadParticipants, spreadFrames
	if b.short {
		participants, frames = 4, 10
	}
	b.progress.Say("%d participants join one room at %d nodes in turn", participants, spreadNodes)
	n, err := newNodes(ctx, b, setup{nodes: spreadNodes, arguments: unhurried})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	r := &room{nodes: n}
	for i := range participants {
		if _, err := r.attend(ctx, i%spreadNodes, body); err != nil {
			return nil, err
		}
	}
	if err := r.awaitFrames(ctx, 1); err != nil {
		return nil, err
	}
	var first lab.Distribution
	for _, a := range r.all {
		for _, publisher := range r.all {
			// The frames of a publisher that joined later begin with the publisher.
			began := a.joined
			if publisher.joined.After(began) {
				began = publisher.joined
			}
			for _, tile := range publisher.tiles() {
				if publisher != a {
					first.Add(a.Tile(tile).First.Sub(began))
				}
			}
		}
	}
	if err := r.awaitFrames(ctx, frames); err != nil {
		return nil, err
	}
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	lost, received := r.lost(everyone)
	return []claim.Line{
		claim.AtMost(fmt.Sprintf("from the join until the first frame of every tile, p99 of %d", first.Count()),
			first.Percentile(0.99).Seconds(), "s", 1),
		claim.Stated("from the join until the first frame of every tile, p50", first.Percentile(0.5).Seconds(), "s"),
		claim.Exactly(fmt.Sprintf("frames lost of %d", lost+received), lost, "", 0),
		claim.Exactly("participants whose session has ended, or who received wrong frames", r.failures(), "", 0),
	}, nil
}
