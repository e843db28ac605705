package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

const (
	// outageTime is the time for which there is no NATS server.
	outageTime = 30 * time.Second
	// switchPatience is the time for a switch of quality while there is none.
	switchPatience = 2 * time.Second
)

// twoQualities is a load with two qualities of different sizes.
var twoQualities = testbed.Load{Name: "body", Tiles: 1, Qualities: 2, FrameBytes: 4000, Step: 2, Variation: 0.3,
	Rate: 10}

// natsGone ends the NATS server of a cluster for a time.
func natsGone(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	length := outageTime
	if b.short {
		length = 4 * time.Second
	}
	b.progress.Say("an external NATS server is gone for %v", length)
	n, err := newNodes(ctx, b, setup{nodes: 3, external: true, arguments: unhurried})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	r := &room{nodes: n}
	if err := r.fill(ctx); err != nil {
		return nil, err
	}
	publisher, receiver, err := r.switchers(ctx)
	if err != nil {
		return nil, err
	}
	defer receiver.Leave()
	defer publisher.Leave()
	if err := r.awaitFrames(ctx, 10); err != nil {
		return nil, err
	}
	began := time.Now()
	n.stopNATS()
	// The first switch is after the nodes have noticed the outage.
	if err := lab.Pause(ctx, min(5*time.Second, length/2)); err != nil {
		return nil, err
	}
	switched, failed := r.switches(ctx, receiver)
	joined, refused := r.joins(ctx)
	if err := lab.Pause(ctx, time.Until(began.Add(length))); err != nil {
		return nil, err
	}
	if n.nats, err = startNATS(); err != nil {
		return nil, err
	}
	back := time.Now()
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	visible := testbed.Await(waiting, "all participants see all others", r.visible)
	seen := time.Since(back)
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	lost, received := r.lost(everyone)
	lines = []claim.Line{
		claim.Exactly(fmt.Sprintf("frames lost of %d", lost+received), lost, "", 0),
		claim.Exactly("switches without NATS that failed", int64(failed), fmt.Sprintf("of %d", switched.Count()+failed),
			0),
		claim.Stated("switches without NATS, longest", lab.Milliseconds(switched.Max()), "ms"),
		claim.Exactly("joins without NATS that failed", int64(refused), fmt.Sprintf("of %d", joined+refused), 0),
		claim.AtMost("after the return, those who joined are visible to all", seen.Seconds(), "s", 1),
		claim.Exactly("participants whose session has ended, or who received wrong frames", r.failures(), "", 0),
	}
	return lines, visible
}

// switchers adds a publisher of two qualities at the first node, in another room, and a receiver at the second.
func (r *room) switchers(ctx context.Context) (publisher, receiver *testbed.Peer, err error) {
	if publisher, err = r.nodes.join(ctx, 0, testbed.Part{Room: "switches", Identity: "publisher",
		Loads: []testbed.Load{twoQualities}}); err != nil {
		return nil, nil, err
	}
	if receiver, err = r.nodes.join(ctx, 1, testbed.Part{Room: "switches", Identity: "receiver",
		Receive: true}); err != nil {
		publisher.Leave()
	}
	return publisher, receiver, err
}

// switches has a receiver switch the quality of a publication at another node. It returns the time of each switch until
// the first frame, and the number of those without a frame within switchPatience.
func (r *room) switches(ctx context.Context, receiver *testbed.Peer) (times lab.Distribution, failed int) {
	ref := volumetric.PublicationRef{Participant: "publisher", Publication: twoQualities.Name}
	for i := range 6 {
		quality := volumetric.Quality(i % twoQualities.Qualities)
		began := time.Now()
		waiting, cancel := context.WithTimeout(ctx, switchPatience)
		err := receiver.Session.SetQuality(waiting, signal.Choice{PublicationRef: ref, Quality: signal.Only(quality)})
		if err == nil {
			err = testbed.Await(waiting, "frames of the other quality arrive", func() bool {
				_, whole := receiver.QualitySince(volumetric.TileRef{PublicationRef: ref}, quality)
				return whole
			})
		}
		cancel()
		if err != nil {
			failed++
			continue
		}
		times.Add(time.Since(began))
	}
	return times, failed
}

// joins has a participant join at each node, and returns the numbers of those that have joined and that have not.
func (r *room) joins(ctx context.Context) (joined, refused int) {
	for i := range r.nodes.all {
		if _, err := r.attend(ctx, i, body); err != nil {
			refused++
			continue
		}
		joined++
	}
	return joined, refused
}

// visible reports whether every participant sees all others with their publications.
func (r *room) visible() bool {
	for _, a := range r.all {
		seen := make(map[string]int)
		for _, p := range a.Session.Participants() {
			seen[p.Identity] = len(p.Publications)
		}
		for _, other := range r.all {
			if publications, sees := seen[other.identity]; other != a && (!sees || publications != len(other.loads)) {
				return false
			}
		}
	}
	return true
}
