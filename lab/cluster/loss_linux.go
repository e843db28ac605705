package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/exposition"
)

const (
	// lossyTime is the time for which frames are counted.
	lossyTime = 20 * time.Second
	// lossyDelay is the delay of the trunk in each direction: a round trip of 20 ms.
	lossyDelay = 10 * time.Millisecond
)

// lossyTrunks are the losses of the claim, with the least share of frames in percent.
var lossyTrunks = []struct{ loss, frames float64 }{{0.01, 99.9}, {0.05, 99.5}}

// losses measures a trunk that loses packets in both directions.
func losses(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	for _, l := range lossyTrunks {
		more, err := lossyTrunk(ctx, b, l.loss, l.frames)
		lines = append(lines, more...)
		if err != nil {
			return lines, err
		}
	}
	return lines, nil
}

// requested returns the number of packets that a node has requested from publishers and from other nodes, by outcome.
// Delayed packets arrived by themselves after the request: a busy machine delays packets. Lost ones did not.
func requested(before, after exposition.Series) (all, delayed, lost float64) {
	const metric, out = "volsfu_nack_packets_total", `direction="out"`
	since := func(labels ...string) float64 { return after.Sum(metric, labels...) - before.Sum(metric, labels...) }
	return since(out), since(out, `outcome="delayed"`), since(out, `outcome="recovered"`) + since(out, `outcome="lost"`)
}

// asked returns the number of packets that a node was asked for. A packet counts in each request that repeats it.
// Requests that the network has lost are not included.
func asked(before, after exposition.Series) float64 {
	const metric, in = "volsfu_nack_packets_total", `direction="in"`
	return after.Sum(metric, in) - before.Sum(metric, in)
}

func lossyTrunk(ctx context.Context, b *bench, loss, least float64) (lines []claim.Line, err error) {
	length := lossyTime
	if b.short {
		length = 2 * time.Second
	}
	b.progress.Say("a trunk with %v %% loss and a round trip of %v, for %v", 100*loss, 2*lossyDelay, length)
	n, err := newNodes(ctx, b, setup{nodes: 2, arguments: unhurried,
		between: &netem.Config{Delay: lossyDelay, Loss: loss}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	r := &room{nodes: n}
	if _, err := r.attend(ctx, 0, trunkBody); err != nil {
		return nil, err
	}
	if _, err := r.attend(ctx, 1); err != nil {
		return nil, err
	}
	if err := r.awaitFrames(ctx, 30); err != nil {
		return nil, err
	}
	var before, after [2]exposition.Series
	for i, at := range n.all {
		if before[i], err = at.metrics(ctx); err != nil {
			return nil, err
		}
	}
	lossBefore := n.lostOnTrunk()
	if err := lab.Pause(ctx, length); err != nil {
		return nil, err
	}
	for i, at := range n.all {
		if after[i], err = at.metrics(ctx); err != nil {
			return nil, err
		}
	}
	lostPackets := float64(n.lostOnTrunk() - lossBefore)
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	missing, received := r.lost(everyone)
	fromPublishers, delayed, _ := requested(before[0], after[0])
	_, delayedAcross, lostMedia := requested(before[1], after[1])
	// No client of the first node receives over a network with loss: the requests are those of the second node.
	across := asked(before[0], after[0])
	prefix := fmt.Sprintf("%v %% loss: ", 100*loss)
	validity := n.network.Validity()
	lines = []claim.Line{
		claim.AtLeast(fmt.Sprintf("%sframes received, of %d", prefix, missing+received),
			100*float64(received)/float64(max(1, missing+received)), "%", least),
		claim.AtMost(fmt.Sprintf("%srequests over the trunk per lost packet of media, of %.0f", prefix, lostMedia),
			across/max(1, lostMedia), "", 1.15),
		claim.Exactly(prefix+"packets requested from publishers, without delayed ones", int64(fromPublishers-delayed),
			"", 0),
		claim.Information(prefix+"delayed packets requested from publishers", delayed, ""),
		claim.Information(prefix+"delayed packets requested over the trunk", delayedAcross, ""),
		claim.Information(prefix+"lateness of the emulated network, p99.9", lab.Milliseconds(validity.P999), "ms"),
	}
	if lostPackets == 0 {
		lines = append(lines, claim.Fail(prefix+"the trunk", "lost no packets"))
	}
	return lines, nil
}

// lostOnTrunk returns the number of packets that the emulated link has lost from the first node to the second.
func (n *nodes) lostOnTrunk() uint64 {
	s := n.network.Statistics()
	return s.Wire(linkOf(n.network.hosts[0], n.network.hosts[1]), topology.Forth).LostRandom
}
