package paper003

import (
	"context"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/lab/baseline/duplicator"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/topology"
)

// The triggers of the arm "paper".
const (
	// triggerRequests is the paper's: three intervals between requests above 150 ms.
	triggerRequests = "requests"
	// triggerOnset also enables the copies when the variation begins.
	triggerOnset = "onset"
)

// published starts the paper's system. Its sender is on the server's host, and its receiver on the viewer's.
func published(_ context.Context, n *topology.Network, t *trial, _ *experiment.Settings) (*method, error) {
	host := func(name string) duplicator.Host {
		h := duplicator.Host{Address: n.Address(name), Inside: func(f func() error) error { return n.Inside(name, f) }}
		for i := range tableOne {
			h.Interfaces = append(h.Interfaces, topology.InterfaceName(i))
		}
		return h
	}
	pair, err := duplicator.Start(host(HostServer), host(HostViewer))
	if err != nil {
		return nil, err
	}
	m := &method{
		requested: pair.Request,
		count: func(context.Context) (sentPackets, error) {
			c, err := pair.Counts()
			return sentPackets{c.Packets, c.Copies}, err
		},
		describe: func(o *experiment.Outcome, onset time.Time) { describeRuns(o, pair.Runs(), onset) },
		stop:     pair.Close,
	}
	if t.Trigger == triggerOnset {
		m.control = func(ctx context.Context, onset time.Time) error {
			select {
			case <-time.After(time.Until(onset)):
				pair.Enable()
			case <-ctx.Done():
			}
			return nil
		}
	}
	return m, nil
}

// describeRuns adds the figures of Algorithm 1: those of its first run.
func describeRuns(o *experiment.Outcome, runs []duplicator.Run, onset time.Time) {
	o.Set("starts", float64(len(runs)))
	if len(runs) == 0 {
		o.Note("The paper's trigger did not start copies: no three intervals between requests exceeded 150 ms.")
		return
	}
	first := &runs[0]
	o.Set("started", first.Started.Sub(onset).Seconds())
	for i := range tableOne {
		if removed := first.Removed[i]; removed > 0 {
			o.Set(fmt.Sprintf("removed%d", i+1), float64(removed)/duplicator.Window)
		}
		var rewards []float64
		var points [][2]float64
		for window, reward := range first.Rewards {
			rewards = append(rewards, float64(reward[i]))
			points = append(points, [2]float64{float64(window + 1), float64(reward[i])})
		}
		o.Sample(fmt.Sprintf("reward%d", i+1), rewards)
		o.Series(fmt.Sprintf("reward of path %d", i+1), "windows", "packets", points)
	}
}
