package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

const (
	// partitionTime is the time for which the first node is apart from the others.
	partitionTime = 10 * time.Second
	// twin is the identity that joins on both sides.
	twin = "twin"
)

// partition separates one node from the others, while clients are connected to both sides.
func partition(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	length := partitionTime
	if b.short {
		length = 4 * time.Second
	}
	b.progress.Say("a node is apart from two others for %v, and one identity joins on both sides", length)
	n, err := newNodes(ctx, b, setup{nodes: 3, arguments: unhurried})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	r := &room{nodes: n}
	if err := r.fill(ctx); err != nil {
		return nil, err
	}
	if err := r.awaitFrames(ctx, 10); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := n.network.plugIn(forNodes, 0, false); err != nil {
		return nil, err
	}
	// The nodes notice each other's silence first.
	if err := lab.Pause(ctx, 2*time.Second); err != nil {
		return nil, err
	}
	var twins []*testbed.Peer
	for _, node := range []int{0, 1} {
		p, err := n.join(ctx, node, testbed.Part{Room: roomName, Identity: twin, Receive: true})
		if err != nil {
			return nil, fmt.Errorf("%s at node %s: %w", twin, n.all[node].name, err)
		}
		defer p.Leave()
		twins = append(twins, p)
	}
	// The views differ: each side has a participant that the other side has not.
	for _, node := range []int{0, 1} {
		if _, err := r.attend(ctx, node, body); err != nil {
			return nil, err
		}
	}
	apart := r.visible()
	if err := lab.Pause(ctx, time.Until(began.Add(length))); err != nil {
		return nil, err
	}
	if err := n.network.plugIn(forNodes, 0, true); err != nil {
		return nil, err
	}
	healed := time.Now()
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	equal := testbed.Await(waiting, "all views are equal", func() bool { return r.visible() && r.equalViews() })
	took := time.Since(healed)
	_ = testbed.Await(waiting, "one of the two has left", func() bool { return living(twins) == 1 })
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	reconnected := 0
	for _, a := range r.all {
		reconnected += a.Count("resumed")
	}
	if apart {
		return nil, errors.New("the views were equal during the partition")
	}
	return []claim.Line{
		claim.AtMost("views are equal after the cable has returned", took.Seconds(), "s", 1),
		claim.Exactly("sessions of the identity that remain", int64(living(twins)), "", 1),
		claim.Exactly("others that reconnected", int64(reconnected), "", 0),
		claim.Exactly("others whose session has ended, or who received wrong frames", r.failures(), "", 0),
	}, equal
}

// living returns the number of sessions that have not ended.
func living(peers []*testbed.Peer) (count int) {
	for _, p := range peers {
		if p.Session.Err() == nil {
			count++
		}
	}
	return count
}

// equalViews reports whether all participants see the same identities, themselves included.
func (r *room) equalViews() bool {
	var first string
	for i, a := range r.all {
		names := []string{a.identity}
		for _, p := range a.Session.Participants() {
			names = append(names, p.Identity)
		}
		slices.Sort(names)
		view := strings.Join(names, " ")
		if i == 0 {
			first = view
		}
		if view != first || !strings.Contains(view, twin) {
			return false
		}
	}
	return true
}
