package firstlight

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/test/testbed"
)

// fullRoom is a room with all participants except the last.
type fullRoom struct {
	check      *Room
	conference *testbed.Conference
	peers      []*testbed.Peer
	names      []string
}

func (r *fullRoom) join(ctx context.Context, name string) (*testbed.Peer, error) {
	return r.conference.Join(ctx, testbed.Part{Room: "room", Identity: name, Loads: []testbed.Load{r.check.Load},
		MinUplink: testbed.Everything, Receive: true})
}

// complete waits until a newcomer has a frame of every tile of every resident.
func (r *fullRoom) complete(ctx context.Context, p *testbed.Peer) error {
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	for _, name := range r.names {
		if err := awaitFrames(ctx, p, tilesOf(name, r.check.Load.Name, r.check.Load.Tiles), 1); err != nil {
			return err
		}
	}
	return nil
}

// failure returns the first error about frames that the residents received.
func (r *fullRoom) failure() error {
	for i, p := range r.peers {
		if err := p.Failure(); err != nil {
			return fmt.Errorf("%s: %w", r.names[i], err)
		}
	}
	return nil
}

// view is the residents' reception of each other during a window.
type view struct {
	gap    time.Duration
	counts client.FrameCounts
}

// watching is a window of time in which the residents are observed.
type watching struct {
	room   *fullRoom
	began  time.Time
	before client.FrameCounts
}

// watch begins a window.
func (r *fullRoom) watch() *watching {
	for _, p := range r.peers {
		p.ResetGaps()
	}
	return &watching{room: r, began: time.Now(), before: r.counts()}
}

// view waits until the window has the given length, and returns the view.
func (w *watching) view(ctx context.Context, window time.Duration) (view, error) {
	if err := lab.Pause(ctx, time.Until(w.began.Add(window))); err != nil {
		return view{}, err
	}
	return view{gap: w.room.longestGap(), counts: minus(w.room.counts(), w.before)}, nil
}

// add sums two views; the longer gap counts.
func (v *view) add(other view) {
	v.gap = max(v.gap, other.gap)
	v.counts = plus(v.counts, other.counts)
}

// counts sums the residents' counters of each other.
func (r *fullRoom) counts() client.FrameCounts {
	var sum client.FrameCounts
	for _, p := range r.peers {
		for _, s := range p.Session.Stats() {
			if r.resident(s.Track.Participant) {
				sum = plus(sum, s.FrameCounts)
			}
		}
	}
	return sum
}

// longestGap returns the longest time that a resident waited for a frame of a tile of another resident, current waits
// included.
func (r *fullRoom) longestGap() time.Duration {
	var longest time.Duration
	now := time.Now()
	for _, p := range r.peers {
		for ref, tile := range p.Tiles() {
			if r.resident(ref.Participant) {
				longest = max(longest, tile.LongestGap, now.Sub(tile.Last))
			}
		}
	}
	return longest
}

// offers returns the number of offers that the server has made.
func (r *fullRoom) offers(ctx context.Context) (float64, error) {
	return r.conference.Metric(ctx, `volsfu_signalling_messages_total{direction="out",type="offer"}`)
}

func (r *fullRoom) resident(name string) bool { return slices.Contains(r.names, name) }
