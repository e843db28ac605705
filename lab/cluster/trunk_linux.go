package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

const (
	// trunkTime is the time for which packets are counted.
	trunkTime = 10 * time.Second
	// trunkReceivers join at the second node: they need one copy together.
	trunkReceivers = 3
	// untakenEnds is the number of times that all receivers leave.
	untakenEnds = 10
)

// trunkBody is three tiles of 20 kB at 30 frames per second, 14.4 Mbit/s.
var trunkBody = testbed.Load{Name: "body", Tiles: 3, Qualities: 1, FrameBytes: 20_000, Variation: 0.3, Rate: 30}

// fromTo chooses the RTP packets between two addresses.
func fromTo(from, to netip.Addr) func(*packet) bool {
	return func(p *packet) bool {
		return p.from.Addr() == from && p.to.Addr() == to
	}
}

// trunkPackets counts the packets of wanted tracks on the cable of a publisher's node, and those on the trunk.
func trunkPackets(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	length, ends := trunkTime, untakenEnds
	if b.short {
		length, ends = time.Second, 1
	}
	n, err := newNodes(ctx, b, setup{nodes: 2, arguments: unhurried})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	r := &room{nodes: n}
	if _, err := r.attend(ctx, 0, trunkBody); err != nil {
		return nil, err
	}
	for range trunkReceivers {
		if _, err := r.attend(ctx, 1); err != nil {
			return nil, err
		}
	}
	if err := r.awaitFrames(ctx, 10); err != nil {
		return nil, err
	}
	b.progress.Say("one publisher at a node, %d receivers at another, for %v", trunkReceivers, length)
	up, err := newTap(forClients, 0)
	if err != nil {
		return nil, err
	}
	across, err := newTap(forNodes, 0)
	if err != nil {
		up.close()
		return nil, err
	}
	began := time.Now()
	err = lab.Pause(ctx, length)
	r.all[0].StopPublishing()
	err = errors.Join(err, lab.Pause(ctx, 200*time.Millisecond))
	missed := up.close() + across.close()
	if err != nil {
		return nil, err
	}
	sent := up.since(began, fromTo(forClients.own(), forClients.address(0)))
	carried := across.since(began, fromTo(n.network.nodeAddress(0), n.network.nodeAddress(1)))
	lines = []claim.Line{
		claim.AtMost(fmt.Sprintf("trunk packets per packet of wanted tracks, of %d", len(sent)),
			float64(len(carried))/float64(max(len(sent), 1)), "", 1.02),
		claim.Exactly("packets that the taps have missed", int64(missed), "", 0),
	}
	ended, err := untaken(ctx, b, n, ends)
	if err != nil {
		return lines, err
	}
	return append(lines, claim.AtMost(fmt.Sprintf("an untaken track ends, longest of %d", ended.Count()),
		lab.Milliseconds(ended.Max()), "ms", 250)), nil
}

// untaken has a receiver choose no quality of a publication at another node, and measures the time until the last
// packet of the trunk.
func untaken(ctx context.Context, b *bench, n *nodes, count int) (times lab.Distribution, err error) {
	b.progress.Say("a receiver switches a publication off, %d times", count)
	r := &room{nodes: n}
	publisher, err := n.join(ctx, 0, testbed.Part{Room: "untaken", Identity: "publisher",
		Loads: []testbed.Load{trunkBody}})
	if err != nil {
		return times, err
	}
	r.all = append(r.all, &attendee{Peer: publisher, identity: "publisher", loads: []testbed.Load{trunkBody}})
	receiver, err := n.join(ctx, 1, testbed.Part{Room: "untaken", Identity: "receiver", Receive: true})
	if err != nil {
		return times, err
	}
	r.all = append(r.all, &attendee{Peer: receiver, identity: "receiver", node: 1})
	tap, err := newTap(forNodes, 0)
	if err != nil {
		return times, err
	}
	defer tap.close()
	ref := volumetric.PublicationRef{Participant: "publisher", Publication: trunkBody.Name}
	choose := func(quality volumetric.Quality) error {
		return receiver.Session.SetQuality(ctx, signal.Choice{PublicationRef: ref, Quality: signal.Only(quality)})
	}
	for i := range count {
		if err := r.awaitFrames(ctx, 10); err != nil {
			return times, err
		}
		// The wait ends with a frame. The switches are at all times of the interval.
		if err := lab.Pause(ctx, interval(trunkBody)*time.Duration(i)/time.Duration(count)); err != nil {
			return times, err
		}
		began := time.Now()
		if err := choose(volumetric.QualityOff); err != nil {
			return times, err
		}
		if err := lab.Pause(ctx, time.Second); err != nil {
			return times, err
		}
		last := began
		for _, p := range tap.since(began, fromTo(n.network.nodeAddress(0), n.network.nodeAddress(1))) {
			last = p.at
		}
		times.Add(last.Sub(began))
		if err := choose(volumetric.Quality(0)); err != nil {
			return times, err
		}
	}
	return times, nil
}
