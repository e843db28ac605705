package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/hotpath"
	"github.com/volsfu/volsfu/test/claim"
)

// idleTime is the time for which idle nodes are measured.
const idleTime = 20 * time.Second

// usage is the time and the memory of a server that has nothing to do.
type usage struct {
	// share is the share of a core, in percent. resident is in MB.
	share, resident float64
}

// idle measures three nodes without participants, beside a server without a cluster.
func idle(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	length := idleTime
	if b.short {
		length = time.Second
	}
	b.progress.Say("three idle nodes for %v, and a server alone", length)
	program, err := b.program()
	if err != nil {
		return nil, err
	}
	alone, err := measureAlone(ctx, program, length)
	if err != nil {
		return nil, err
	}
	n, err := newNodes(ctx, b, setup{nodes: 3})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	var started time.Duration
	before := make([]time.Duration, len(n.all))
	for i, at := range n.all {
		started = max(started, at.started)
		before[i] = hotpath.ProcessTime(at.PID(), nil)
	}
	began := time.Now()
	if err := lab.Pause(ctx, length); err != nil {
		return nil, err
	}
	var most usage
	for i, at := range n.all {
		used := hotpath.ProcessTime(at.PID(), nil) - before[i]
		resident, err := lab.ResidentBytes(at.PID())
		if err != nil {
			return nil, err
		}
		most.share = max(most.share, 100*used.Seconds()/time.Since(began).Seconds())
		most.resident = max(most.resident, resident/1e6)
	}
	return []claim.Line{
		claim.AtMost("from the start of the program until a node is ready, longest", started.Seconds(), "s", 1),
		claim.AtMost("memory of a node beyond a server alone, most", most.resident-alone.resident, "MB", 15),
		claim.AtMost("processor time of a node, most", most.share, "% of a core", 2),
		claim.Stated("memory of a node, most", most.resident, "MB"),
		claim.Stated("processor time of a server alone", alone.share, "% of a core"),
	}, nil
}

// measureAlone measures an idle server without a cluster.
func measureAlone(ctx context.Context, program string, length time.Duration) (u usage, err error) {
	s, err := lab.StartServer(ctx, program)
	if err != nil {
		return u, err
	}
	defer s.Kill()
	before, began := hotpath.ProcessTime(s.PID(), nil), time.Now()
	if err := lab.Pause(ctx, length); err != nil {
		return u, err
	}
	u.share = 100 * (hotpath.ProcessTime(s.PID(), nil) - before).Seconds() / time.Since(began).Seconds()
	resident, err := lab.ResidentBytes(s.PID())
	u.resident = resident / 1e6
	return u, err
}
