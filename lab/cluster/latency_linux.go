package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

const (
	// relayedTime is the time for which packets are measured.
	relayedTime = 20 * time.Second
	// relayedNear is the longest difference that is recognised: half the interval of packets.
	relayedNear = 10 * time.Millisecond
)

// relayedBody is one frame of one packet every 20 ms: a packet is recognised by the time at which it leaves.
var relayedBody = testbed.Load{Name: "body", Tiles: 1, Qualities: 1, FrameBytes: 500, Rate: 50}

// relayed measures the latency that a relay adds: the time from a packet's departure to a receiver at the publisher's
// node until its departure to a receiver at another node, by the kernel's times on the cables of the nodes.
func relayed(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	length := relayedTime
	if b.short {
		length = time.Second
	}
	n, err := newNodes(ctx, b, setup{nodes: 2, arguments: unhurried})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	r := &room{nodes: n}
	if _, err := r.attend(ctx, 0, relayedBody); err != nil {
		return nil, err
	}
	for node := range n.all {
		if _, err := r.attend(ctx, node); err != nil {
			return nil, err
		}
	}
	if err := r.awaitFrames(ctx, 10); err != nil {
		return nil, err
	}
	b.progress.Say("a publisher and a receiver at one node, a receiver at another, for %v", length)
	var departures [2][]time.Time
	var taps [2]*tap
	for node := range taps {
		if taps[node], err = newTap(forClients, node); err != nil {
			return nil, err
		}
		defer taps[node].close()
	}
	began := time.Now()
	if err := lab.Pause(ctx, length); err != nil {
		return nil, err
	}
	ended := time.Now().Add(-relayedNear)
	for node, tap := range taps {
		for _, p := range tap.since(began, fromTo(forClients.address(node), forClients.own())) {
			departures[node] = append(departures[node], p.at)
		}
	}
	added, unlike := differences(departures[0], departures[1], ended)
	return []claim.Line{
		claim.AtMost(fmt.Sprintf("added by a relay, p50 of %d packets", added.Count()),
			lab.Milliseconds(added.Percentile(0.5)), "ms", 0.4),
		claim.AtMost("added by a relay, p99", lab.Milliseconds(added.Percentile(0.99)), "ms", 1),
		claim.Stated("added by a relay, longest", lab.Milliseconds(added.Max()), "ms"),
		claim.AtMost("packets whose relay took more than 10 ms",
			100*float64(unlike)/float64(max(1, added.Count()+unlike)), "%", 1),
	}, nil
}

// differences returns the time from each departure near, before ended, until the nearest departure far, and the number
// of those without one within relayedNear.
func differences(near, far []time.Time, ended time.Time) (added lab.Distribution, unlike int) {
	for _, at := range near {
		if at.After(ended) {
			continue
		}
		i, _ := slices.BinarySearchFunc(far, at, time.Time.Compare)
		best := relayedNear + 1
		for _, j := range []int{i - 1, i} {
			if j >= 0 && j < len(far) && far[j].Sub(at).Abs() < best.Abs() {
				best = far[j].Sub(at)
			}
		}
		if best.Abs() > relayedNear {
			unlike++
			continue
		}
		added.Add(best)
	}
	return added, unlike
}
