package firstlight

import (
	"context"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

// roomOutcome holds the figures of joining and leaving.
type roomOutcome struct {
	check *Room
	// quiet is the residents' view while no participant joined or left; joins and leaves are sums, with the longest gap
	// of any.
	quiet, joins, leaves view
	joinTimes            lab.Distribution
	connectTimes         lab.Distribution
	// seen is the time until the residents had seen every tile of the newcomer.
	seen lab.Distribution
	// offers is the largest number of offers of a join, including the offers to the newcomer.
	offers float64
}

// round makes the last participant join and leave once.
func (o *roomOutcome) round(ctx context.Context, room *fullRoom) error {
	offers, err := room.offers(ctx)
	if err != nil {
		return err
	}
	// Each round uses a new name, so no resident has seen the tiles before.
	name := fmt.Sprintf("newcomer-%d", o.joinTimes.Count())
	watching := room.watch()
	newcomer, err := room.join(ctx, name)
	if err != nil {
		return err
	}
	defer newcomer.Leave()
	if err := room.complete(ctx, newcomer); err != nil {
		return err
	}
	joining, err := watching.view(ctx, o.check.Window)
	if err != nil {
		return err
	}
	o.joins.add(joining)
	o.timeJoin(room, newcomer, name)
	made, err := room.offers(ctx)
	if err != nil {
		return err
	}
	o.offers = max(o.offers, made-offers)
	watching = room.watch()
	newcomer.Leave()
	leaving, err := watching.view(ctx, o.check.Window)
	if err != nil {
		return err
	}
	o.leaves.add(leaving)
	return newcomer.Failure()
}

// timeJoin reads the times until the newcomer saw all residents and until all residents saw the newcomer.
func (o *roomOutcome) timeJoin(room *fullRoom, newcomer *testbed.Peer, name string) {
	var last time.Time
	for _, tile := range newcomer.Tiles() {
		if tile.First.After(last) {
			last = tile.First
		}
	}
	o.joinTimes.Add(last.Sub(newcomer.Opened))
	o.connectTimes.Add(newcomer.ConnectedAt().Sub(newcomer.Opened))
	last = time.Time{}
	for _, p := range room.peers {
		for ref, tile := range p.Tiles() {
			if ref.Participant == name && tile.First.After(last) {
				last = tile.First
			}
		}
	}
	o.seen.Add(last.Sub(newcomer.Opened))
}

// lines returns the figures.
func (o *roomOutcome) lines() []claim.Line {
	ms := lab.Milliseconds
	return []claim.Line{
		claim.AtMost("websocket open → first frame of every tile of every participant, longest",
			ms(o.joinTimes.Max()), "ms", ms(o.check.JoinTime)),
		claim.Information("websocket open → first frame of every tile of every participant, median",
			ms(o.joinTimes.Percentile(0.5)), "ms"),
		claim.Information("websocket open → connected, median", ms(o.connectTimes.Percentile(0.5)), "ms"),
		claim.Information("websocket open → every participant has a frame of every tile of the newcomer, median",
			ms(o.seen.Percentile(0.5)), "ms"),
		claim.Information("others: longest gap of a tile without joins and leaves", ms(o.quiet.gap), "ms"),
		claim.AtMost("others: longest gap of a tile during joins", ms(o.joins.gap), "ms", ms(o.check.Gap)),
		claim.AtMost("others: longest gap of a tile during leaves", ms(o.leaves.gap), "ms", ms(o.check.Gap)),
		claim.AtMost("offers per join, including those to the newcomer", o.offers, "", float64(o.check.Participants)),
		claim.Information("others: frames expected during joins and leaves",
			float64(o.joins.counts.Expected+o.leaves.counts.Expected), ""),
		claim.Exactly("others: frames undecodable or missing during joins", lost(o.joins.counts), "", 0),
		claim.Exactly("others: frames undecodable or missing during leaves", lost(o.leaves.counts), "", 0),
		claim.Information("others: frames undecodable or missing without joins and leaves",
			float64(lost(o.quiet.counts)), ""),
	}
}
