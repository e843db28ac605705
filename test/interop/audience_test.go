package interop

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/interop/oldpeer"
)

// audience reads the frames that an old peer passes to VR2Gather, and compares them with the published ones.
type audience struct {
	peer *oldpeer.Peer

	mu    sync.Mutex
	seen  map[oldpeer.Source]*sight
	wrong []error
}

// sight has the frames received of one source.
type sight struct {
	Frames int
	// Last is the newest frame.
	Last content
	// Lost is the number of missing instants between received ones.
	Lost int
}

// take records a frame.
func (s *sight) take(c content) {
	if s.Frames > 0 && c.Instant > s.Last.Instant {
		s.Lost += int(c.Instant-s.Last.Instant) - 1
	}
	s.Frames++
	s.Last = c
}

// attend reads an old peer's frames until the peer is closed.
func attend(t *testing.T, peer *oldpeer.Peer) *audience {
	a := &audience{peer: peer, seen: make(map[oldpeer.Source]*sight)}
	var reading sync.WaitGroup
	t.Cleanup(func() {
		peer.Close()
		reading.Wait()
	})
	reading.Go(func() {
		for f := range peer.Frames() {
			a.take(f)
		}
	})
	return a
}

func (a *audience) take(f oldpeer.Frame) {
	c, err := read(f.Data)
	if err == nil && f.Tile != oldpeer.SoundTile && (c.Tile != f.Tile || c.Quality != f.Quality) {
		err = fmt.Errorf("frame %+v arrived as tile %d at quality %d", c, f.Tile, f.Quality)
	}
	if err == nil && f.Tile == oldpeer.SoundTile && c.Tile != oldpeer.SoundTile {
		err = fmt.Errorf("frame %+v arrived as sound", c)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.seen[f.Source]
	if s == nil {
		s = &sight{Last: c}
		a.seen[f.Source] = s
	}
	if err == nil && c.Client != s.Last.Client {
		err = fmt.Errorf("frame %+v arrived as client %d, whose frames are of %d", c, f.Client, s.Last.Client)
	}
	if err != nil {
		a.wrong = append(a.wrong, err)
		return
	}
	s.take(c)
}

// of returns the record of a source.
func (a *audience) of(source oldpeer.Source) sight {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.seen[source]; s != nil {
		return *s
	}
	return sight{}
}

// clients maps publishers' own numbers to those that this peer uses for them.
func (a *audience) clients() map[int]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	clients := map[int]int{}
	for source, s := range a.seen {
		clients[s.Last.Client] = source.Client
	}
	return clients
}

// sees reports whether the newest frames of all tiles of a client have the given qualities. Tiles that are off are not
// checked.
func (a *audience) sees(client int, qualities []int) bool {
	for tile, quality := range qualities {
		if quality >= 0 && a.of(oldpeer.Source{Client: client, Tile: tile}).Last.Quality != quality {
			return false
		}
	}
	return true
}

// lost returns the number of missing frames of a client, in tiles that arrive at one quality, for a programme without
// skipped frames.
func (a *audience) lost(client, tiles int) (n int) {
	for tile := range tiles {
		n += a.of(oldpeer.Source{Client: client, Tile: tile}).Lost
	}
	return n
}

// tally has the counts of one receiver.
type tally struct {
	frames int
	// bad are the frames that were broken, rejected, or differ from the sent ones. faults are those that would end or
	// disturb the original, other than bad frames.
	bad, faults int
	// incomplete are the frames with missing packets, whose number is given.
	incomplete, packets int
}

func add(tallies ...tally) (sum tally) {
	for _, t := range tallies {
		sum.frames, sum.bad, sum.faults = sum.frames+t.frames, sum.bad+t.bad, sum.faults+t.faults
		sum.incomplete, sum.packets = sum.incomplete+t.incomplete, sum.packets+t.packets
	}
	return sum
}

// tally returns the counts of all sources.
func (a *audience) tally() tally {
	sum := tally{packets: a.peer.Counts().SequenceGaps}
	if a.peer.Fault() != nil {
		sum.faults = 1
	}
	for _, r := range a.peer.Receptions() {
		sum.frames += r.Frames
		sum.bad += r.Rejected + r.Broken + r.Repeated + r.Unread
		sum.incomplete += r.Incomplete
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	sum.bad += len(a.wrong)
	return sum
}

// pace starts counting the frames of the tiles of clients. The returned function ends this, and returns the frames per
// second of the slowest.
func (a *audience) pace(tiles int, clients ...int) func() float64 {
	var counts []func() int
	for _, client := range clients {
		for tile := range tiles {
			counts = append(counts, func() int { return a.of(oldpeer.Source{Client: client, Tile: tile}).Frames })
		}
	}
	began, before := time.Now(), make([]int, len(counts))
	for i, count := range counts {
		before[i] = count()
	}
	return func() float64 {
		slowest := math.Inf(1)
		for i, count := range counts {
			slowest = min(slowest, float64(count()-before[i])/time.Since(began).Seconds())
		}
		return slowest
	}
}

// whole fails the test for every frame that was broken, rejected or differs from the sent one, and for every other
// fault. Each incomplete frame has to be explained by packets that a busy machine lost, which are not repaired for old
// peers, or by the frames that the server ended (endedBy).
func (a *audience) whole(t *testing.T, ended int) {
	t.Helper()
	if err := a.peer.Fault(); err != nil {
		t.Error(err)
	}
	a.mu.Lock()
	err := errors.Join(a.wrong[:min(len(a.wrong), 5)]...)
	if len(a.wrong) > 0 {
		t.Errorf("%d frames are wrong, the first of them: %v", len(a.wrong), err)
	}
	a.mu.Unlock()
	incomplete := 0
	for source, r := range a.peer.Receptions() {
		incomplete += r.Incomplete
		if r.Rejected+r.Broken+r.Repeated+r.Unread > 0 || r.Frames == 0 {
			t.Errorf("%+v: %+v", source, r)
		}
	}
	gaps := a.peer.Counts().SequenceGaps
	if incomplete > 0 {
		t.Logf("%d frames are incomplete; %d packets are missing, and the server has ended %d frames", incomplete,
			gaps, ended)
	}
	if incomplete > gaps+ended {
		t.Error("not every incomplete frame is explained")
	}
}
