package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

// oldClientGap is the longest time without frames for clients that do not follow the message Moved.
const oldClientGap = time.Second

// oldClients drains the node of clients that know no other server, and starts the node again.
func oldClients(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	b.progress.Say("the node of old clients drains and starts again")
	n, err := newNodes(ctx, b, setup{nodes: 3, arguments: unhurried})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	r := &room{nodes: n}
	if err := r.fill(ctx); err != nil {
		return nil, err
	}
	before, err := testbed.NewBeforeMoves(n.all[drained].url)
	if err != nil {
		return nil, err
	}
	old := make(map[*attendee]bool)
	defer func() {
		for a := range old {
			_ = a.Session.Close()
		}
		before.Close()
	}()
	for range eachNode {
		a, err := r.attendBy(ctx, drained, before.URL, body)
		if err != nil {
			return nil, err
		}
		old[a] = true
	}
	if err := r.awaitFrames(ctx, 10); err != nil {
		return nil, err
	}
	r.resetGaps()
	if err := n.terminate(ctx, drained); err != nil {
		return nil, err
	}
	if err := r.awaitFrames(ctx, 10); err != nil {
		return nil, err
	}
	gap := r.longestGap()
	if err := n.start(ctx, drained, n.program); err != nil {
		return nil, err
	}
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	lost, received := r.lost(func(receiver, publisher *attendee) bool { return !old[receiver] && !old[publisher] })
	return []claim.Line{
		claim.AtMost("drain, old clients: longest time between two frames of a tile from or to them",
			lab.Milliseconds(gap), "ms", lab.Milliseconds(oldClientGap)),
		claim.Exactly(fmt.Sprintf("drain, old clients: frames lost among the others, of %d", lost+received), lost, "",
			0),
		claim.Exactly("drain, old clients: participants whose session has ended, or who received wrong frames",
			r.failures(), "", 0),
	}, nil
}
