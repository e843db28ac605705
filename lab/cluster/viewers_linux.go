package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/e2e/puppet"
	"github.com/volsfu/volsfu/test/testbed"
)

const (
	// viewerCount viewers join over viewerNodes, viewersAtOnce at the same time.
	viewerCount, viewerNodes, viewersAtOnce = 500, 5, 8
	// viewerFanout is the number of copies that a node sends.
	viewerFanout = 2
	// announcedCount is the number of participants from which on viewers are not announced (docs/cluster.md).
	announcedCount = 100
	// viewedTime is the time for which packets are counted.
	viewedTime = 10 * time.Second
	// treePatience is the time in which the tree takes its form: moves are half a second apart, and a node moves again
	// after 5 s.
	treePatience = time.Minute
)

// viewed is what the viewers receive: one tile of 1 kB at 5 frames per second. The check is about copies and messages,
// and the viewers share two cores with the nodes.
var viewed = testbed.Load{Name: "body", Tiles: 1, Qualities: 1, FrameBytes: 1000, Variation: 0.1, Rate: 5}

// viewerArguments permit this process to join as many viewers as fast as the nodes can.
var viewerArguments = append([]string{"--cluster-fanout", fmt.Sprint(viewerFanout), "--rooms-participants-per-room",
	"1000", "--signalling-token-rate", "10000", "--signalling-address-rate", "10000", "--signalling-address-websockets",
	"1000"}, unhurried...)

// viewer is a participant that may only receive, and counts packets and messages.
type viewer struct {
	*puppet.Puppet
	packets *atomic.Uint64
}

// view adds a viewer at a node.
func (n *nodes) view(ctx context.Context, number int, identity, token string) (v viewer, err error) {
	media, err := net.ListenUDP("udp4", &net.UDPAddr{IP: forClients.own().AsSlice()})
	if err != nil {
		return v, err
	}
	v.packets = new(atomic.Uint64)
	if v.Puppet, err = puppet.Dial(puppet.Config{URL: n.all[number].URL(), Token: token, Media: media,
		RTP: func(uint32, []byte) { v.packets.Add(1) }}); err != nil {
		return v, err
	}
	if _, err := v.Join(&signal.Join{Version: 1, Room: roomName, Identity: identity, Receive: true}); err != nil {
		v.Close()
		return v, fmt.Errorf("viewer %s: %w", identity, err)
	}
	return v, nil
}

// audience has the viewers.
type audience struct {
	nodes *nodes
	token string
	all   []viewer
}

// grow adds viewers at the nodes in turn until there are count, and waits until each has packets.
func (a *audience) grow(ctx context.Context, count int) error {
	ctx, cancel := context.WithTimeout(ctx, 10*patience)
	defer cancel()
	from := len(a.all)
	a.all = append(a.all, make([]viewer, count-from)...)
	var joins sync.WaitGroup
	failed := make([]error, viewersAtOnce)
	for first := range viewersAtOnce {
		joins.Go(func() {
			for i := from + first; i < count && failed[first] == nil; i += viewersAtOnce {
				a.all[i], failed[first] = a.nodes.view(ctx, i%len(a.nodes.all), fmt.Sprintf("viewer %d", i), a.token)
			}
		})
	}
	joins.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	for i, v := range a.all {
		if err := testbed.Await(ctx, fmt.Sprintf("packets for viewer %d", i), func() bool {
			return v.packets.Load() > 0
		}); err != nil {
			return err
		}
	}
	return nil
}

// notices returns the numbers of messages about participants that the first viewers have received.
func (a *audience) notices(first int) (joined, left, counts int) {
	for _, v := range a.all[:first] {
		joined += v.Count(signal.TypeParticipantJoined)
		left += v.Count(signal.TypeParticipantLeft)
		counts += v.Count(signal.TypeAudience)
	}
	return joined, left, counts
}

func (a *audience) close() {
	for _, v := range a.all {
		if v.Puppet != nil {
			v.Close()
		}
	}
}

// viewers has viewers at five nodes receive a publication of one of them.
func viewers(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	count, announced, length := viewerCount, announcedCount, viewedTime
	if b.short {
		count, announced, length = 20, 10, time.Second
	}
	b.progress.Say("%d viewers at %d nodes, which send %d copies at most", count, viewerNodes, viewerFanout)
	n, err := newNodes(ctx, b, setup{nodes: viewerNodes, arguments: viewerArguments})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	r := &room{nodes: n}
	if _, err := r.attend(ctx, 0, viewed); err != nil {
		return nil, err
	}
	a := &audience{nodes: n}
	defer a.close()
	if a.token, err = mint(false); err != nil {
		return nil, err
	}
	if err := a.grow(ctx, announced); err != nil {
		return nil, err
	}
	// One more participant at each node decodes frames.
	for i := range n.all {
		if _, err := r.attend(ctx, i); err != nil {
			return nil, err
		}
	}
	if err := lab.Pause(ctx, time.Second); err != nil {
		return nil, err
	}
	joined, left, counts := a.notices(announced)
	began := time.Now()
	if err := a.grow(ctx, count); err != nil {
		return nil, err
	}
	took := time.Since(began)
	joinedAfter, leftAfter, countsAfter := a.notices(announced)
	lines, err = copies(ctx, n, r, length)
	if err != nil {
		return lines, err
	}
	if err := r.settle(ctx); err != nil {
		return lines, err
	}
	missing, received := r.lost(everyone)
	further := float64(count - announced)
	lines = append(lines,
		claim.Exactly(fmt.Sprintf("frames lost of %d", missing+received), missing, "", 0),
		claim.Information(fmt.Sprintf("messages audience to one client, for %.0f viewers in %.0f s", further,
			took.Seconds()), float64(countsAfter-counts)/float64(announced), ""))
	if !b.short {
		lines = append(lines, claim.Exactly(fmt.Sprintf("messages to others about %.0f viewers", further),
			int64(joinedAfter+leftAfter-joined-left), "", 0))
	}
	return lines, nil
}

// copies counts the packets between nodes while the publisher's node receives those of the publisher.
func copies(ctx context.Context, n *nodes, r *room, length time.Duration) (lines []claim.Line, err error) {
	limited, cancel := context.WithTimeout(ctx, treePatience)
	defer cancel()
	if err := testbed.Await(limited, "the home sends as many copies as it may", func() bool {
		m, err := n.all[0].metrics(limited)
		return err == nil && m.Sum("volsfu_trunk_copies") <= viewerFanout
	}); err != nil {
		return nil, err
	}
	if err := lab.Pause(ctx, time.Second); err != nil {
		return nil, err
	}
	up, err := newTap(forClients, 0)
	if err != nil {
		return nil, err
	}
	taps := []*tap{up}
	missed := 0
	end := func() {
		for _, t := range taps {
			missed += t.close()
		}
		taps = nil
	}
	defer end()
	for i := range n.all {
		t, err := newTap(forNodes, i)
		if err != nil {
			return nil, err
		}
		taps = append(taps, t)
	}
	began := time.Now()
	if err := lab.Pause(ctx, length); err != nil {
		return nil, err
	}
	r.all[0].StopPublishing()
	if err := lab.Pause(ctx, 500*time.Millisecond); err != nil {
		return nil, err
	}
	sent := up.since(began, fromTo(forClients.own(), forClients.address(0)))
	total := float64(max(len(sent), 1))
	between := func(t *tap, chosen func(from, to netip.Addr) bool) float64 {
		return float64(len(t.since(began, func(p *packet) bool { return chosen(p.from.Addr(), p.to.Addr()) }))) / total
	}
	home := n.network.nodeAddress(0)
	lines = append(lines, claim.AtMost(fmt.Sprintf("copies that the publisher's node sends, of %d packets", len(sent)),
		between(taps[1], func(from, _ netip.Addr) bool { return from == home }), "", viewerFanout*1.02))
	least, most := 0.0, 0.0
	for i := range n.all[1:] {
		at := n.network.nodeAddress(1 + i)
		got := between(taps[2+i], func(_, to netip.Addr) bool { return to == at })
		if i == 0 || got < least {
			least = got
		}
		most = max(most, got)
	}
	end()
	return append(lines,
		claim.AtMost("copies that a node receives, most", most, "", 1.02),
		claim.AtLeast("copies that a node receives, least", least, "", 0.98),
		claim.Exactly("packets that the taps have missed", int64(missed), "", 0)), nil
}
