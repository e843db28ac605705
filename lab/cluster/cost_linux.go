package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/hotpath"
	"github.com/volsfu/volsfu/lab/hotpath/machinelimit"
	"github.com/volsfu/volsfu/test/claim"
)

const (
	// costTime is the measured time of each run, costRuns the number of runs of each kind. The medians count.
	costTime = 8 * time.Second
	costRuns = 3
)

// costLoad is the load of the claim.
var costLoad = hotpath.Load{Publishers: 1, Receivers: 1, Tracks: 40, Qualities: 1, Mbps: 200, FrameRate: 30,
	Spread: 0.4}

// relayCost measures the processor time of a relay: the time of two nodes per packet if the receiver is at the other
// node, less the time of the same nodes if the receiver is at the publisher's node.
func relayCost(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	load, runs, length := costLoad, costRuns, costTime
	if b.short {
		load.Tracks, load.Mbps, runs, length = 4, 10, 1, time.Second
	}
	if err := errors.Join(enterOwnNetwork(), raise("lo")); err != nil {
		return nil, err
	}
	limit, err := machinelimit.Measure(ctx)
	if err != nil {
		return nil, err
	}
	pair, err := startPair(ctx, b)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pair.close()) }()
	var cost [2][]float64
	var lost, busiest float64
	for range runs {
		for i, at := range pair.servers {
			b.progress.Say("%d tracks of %v Mbit/s in total, to a receiver at node %s", load.Tracks, load.Mbps,
				pairNames[i])
			result, err := hotpath.Forward(ctx, hotpath.Options{Load: load, Duration: length, Progress: b.progress,
				URL: pair.servers[0].URL(), Metrics: metricsOf(pair.servers[0]),
				Relay: &hotpath.Relay{URL: at.URL(), Metrics: metricsOf(pair.servers[1])}})
			if err != nil {
				return nil, err
			}
			cost[i] = append(cost[i], result.CPUReceived)
			lost, busiest = lost+float64(result.PacketsLost), max(busiest, result.MachineBusy)
		}
	}
	local, remote := lab.Median(cost[0]), lab.Median(cost[1])
	least := limit.SealSegmented + limit.Receive
	return []claim.Line{
		claim.AtMost("processor time of a relayed packet, relative to the machine's limit", (remote-local)/least, "",
			1.5),
		claim.Stated("processor time of a relayed packet, both ends", remote-local, "µs"),
		claim.Stated("the machine's limit for sending plus receiving", least, "µs"),
		claim.Stated("processor time of both nodes, receiver at the publisher's node", local, "µs per packet"),
		claim.Stated("processor time of both nodes, receiver at the other node", remote, "µs per packet"),
		claim.Information("packets lost in all runs", lost, ""),
		claim.Information("machine busy, at most", 100*busiest, "%"),
	}, nil
}

// pairNames are the names of two nodes on the loopback interface.
var pairNames = [...]string{"a", "b"}

// pair is a cluster of two servers on the loopback interface, without tokens.
type pair struct {
	folder  string
	servers []*lab.ServerProgram
}

// startPair starts the servers, each in a region of its own.
func startPair(ctx context.Context, b *bench) (p *pair, err error) {
	program, err := b.program()
	if err != nil {
		return nil, err
	}
	p = &pair{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.folder, err = os.MkdirTemp("", "volsfu-cluster-"); err != nil {
		return p, err
	}
	for i, name := range pairNames {
		made := exec.CommandContext(ctx, program, "cluster", "certificate", "--directory", p.folder, "--region", name,
			name)
		if said, err := made.CombinedOutput(); err != nil {
			return p, fmt.Errorf("volsfu cluster certificate: %w: %s", err, said)
		}
		s, err := lab.StartServer(ctx, program, "--media-address", "127.0.0.1", "--forward-pacing", "off",
			"--forward-congestion-min-bps", "1000000000", "--forward-congestion-start-bps", "1000000000",
			"--cluster", fmt.Sprintf("embedded://:%d,127.0.0.1:%d", routePort+i, routePort+1-i),
			"--cluster-port", fmt.Sprint(trunkPort+i), "--cluster-directory", filepath.Join(p.folder, name))
		if err != nil {
			return p, err
		}
		p.servers = append(p.servers, s)
	}
	return p, nil
}

// metricsOf returns the address of a server's metrics.
func metricsOf(s *lab.ServerProgram) string { return "http://" + s.Admin + "/metrics" }

// close ends the servers.
func (p *pair) close() error {
	for _, s := range p.servers {
		s.Kill()
	}
	return os.RemoveAll(p.folder)
}
