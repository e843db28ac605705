// Package leak lets hundreds of participants join and leave in every way while media flows, and checks that none of
// their goroutines, memory and descriptors remain in the process, which runs both the server and its clients.
package leak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/e2e/puppet"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/testbed"
)

const (
	// patience limits each wait on a busy machine.
	patience = 60 * time.Second
	// joins is the total number of joins, and atOnce the number at a time.
	joins, atOnce = 200, 4
	// heapTolerance is the allowed growth of the heap in bytes, after garbage collection. A participant that is not
	// freed takes more than 200 kB: peer connections of both sides, with ten lines each. The remainder allows for pools
	// and for tables whose size depends on the maximum number of participants.
	heapTolerance = 2 << 20
)

var (
	resident = testbed.Load{Name: "body", Tiles: 2, Qualities: 2, FrameBytes: 2000, Rate: 10}
	visitor  = testbed.Load{Name: "body", Tiles: 1, Qualities: 2, FrameBytes: 1000, Rate: 10}
)

// house is a server with two residents, which publish and receive all the time.
type house struct {
	*testbed.Conference
	residents []*testbed.Peer

	mu   sync.Mutex
	dead []*puppet.Puppet
}

func open(t *testing.T) *house {
	t.Helper()
	settings := testbed.ConferenceConfig()
	settings.Rooms.ResumeGrace = 300 * time.Millisecond
	// A client that is silent for three of these intervals is removed. A busy machine may silence any client for a
	// while.
	settings.Signalling.PingInterval = 2 * time.Second
	// Enough for all simultaneous visitors, so that the number of the residents' lines does not grow.
	settings.Rooms.SpareSlots, settings.Rooms.SpareAudioSlots = 3*atOnce, 0
	c, err := testbed.NewConference(settings, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	h := &house{Conference: c}
	t.Cleanup(func() {
		c.Close()
		goleak.VerifyNone(t)
	})
	for _, name := range []string{"alice", "bob"} {
		p, err := h.join(name, resident, true)
		if err != nil {
			t.Fatal(err)
		}
		h.residents = append(h.residents, p)
	}
	for i, p := range h.residents {
		if err := await(func() bool { return p.Tile(tileOf([]string{"bob", "alice"}[i])).Frames > 0 }); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func tileOf(participant string) volumetric.TileRef {
	return volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: participant, Publication: "body"}}
}

// await waits for a condition.
func await(condition func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return testbed.Await(ctx, "what a visit waits for has come", condition)
}

func (h *house) join(identity string, load testbed.Load, receive bool) (*testbed.Peer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return h.Join(ctx, testbed.Part{Room: "room", Identity: identity, Loads: []testbed.Load{load}, Receive: receive})
}

// visits are the ways to join and leave.
var visits = []struct {
	name string
	do   func(h *house, identity string) error
}{
	{"publishes and receives, and leaves", func(h *house, identity string) error {
		p, err := h.join(identity, visitor, true)
		if err != nil {
			return err
		}
		defer p.Leave()
		return await(func() bool {
			return p.Tile(tileOf("alice")).Frames > 0 && h.residents[1].Tile(tileOf(identity)).Frames > 0
		})
	}},
	{"receives, and leaves", func(h *house, identity string) error {
		p, err := h.Join(context.Background(), testbed.Part{Room: "room", Identity: identity, Receive: true})
		if err != nil {
			return err
		}
		defer p.Leave()
		return await(func() bool { return p.Tile(tileOf("alice")).Frames > 0 && p.Tile(tileOf("bob")).Frames > 0 })
	}},
	{"leaves at once", func(h *house, identity string) error {
		p, err := h.join(identity, visitor, true)
		if err != nil {
			return err
		}
		p.Leave()
		return nil
	}},
	{"hangs up while media flows", func(h *house, identity string) error {
		return h.puppet(identity, puppet.Config{}, func(p *puppet.Puppet) error {
			if err := await(p.Connected); err != nil {
				return err
			}
			return h.hangUp(p, identity)
		})
	}},
	{"hangs up at once", func(h *house, identity string) error {
		return h.puppet(identity, puppet.Config{}, func(p *puppet.Puppet) error { return h.hangUp(p, identity) })
	}},
	{"never answers, and hangs up", func(h *house, identity string) error {
		silent := puppet.Config{Answer: func(*signal.Offer, string) (string, bool) { return "", false }}
		return h.puppet(identity, silent, func(p *puppet.Puppet) error {
			if err := await(func() bool { return p.LastOffer() != nil }); err != nil {
				return err
			}
			return h.hangUp(p, identity)
		})
	}},
	{"comes back with a new connection, and leaves", func(h *house, identity string) error {
		first, err := puppet.Dial(puppet.Config{URL: h.Server.URL()})
		if err != nil {
			return err
		}
		defer first.Close()
		joined, err := first.Join(greeting(identity))
		if err != nil {
			return err
		}
		if err := await(first.Connected); err != nil {
			return err
		}
		again, err := puppet.Dial(puppet.Config{URL: h.Server.URL()})
		if err != nil {
			return err
		}
		defer again.Close()
		back := greeting(identity)
		back.Resume = &signal.ResumeRequest{Session: joined.Session, Secret: joined.Resume.Secret, NewConnection: true}
		if _, err := again.Join(back); err != nil {
			return err
		}
		if err := await(again.Connected); err != nil {
			return err
		}
		_, err = again.Request(&signal.Leave{})
		return err
	}},
	{"does not join", func(h *house, _ string) error {
		p, err := puppet.Dial(puppet.Config{URL: h.Server.URL()})
		if err == nil {
			p.Close()
		}
		return err
	}},
	{"is refused", func(h *house, _ string) error {
		p, err := puppet.Dial(puppet.Config{URL: h.Server.URL()})
		if err != nil {
			return err
		}
		defer p.Close()
		if _, err := p.Join(greeting("alice")); err == nil {
			return errors.New("somebody joined as somebody else")
		}
		return nil
	}},
	{"dies", func(h *house, identity string) error {
		p, err := puppet.Dial(puppet.Config{URL: h.Server.URL()})
		if err != nil {
			return err
		}
		// Closed sockets would be noticed as a departure: they stay open until the server has detected the loss.
		h.mu.Lock()
		h.dead = append(h.dead, p)
		h.mu.Unlock()
		join := greeting(identity)
		join.Publications = nil
		if _, err := p.Join(join); err != nil {
			return err
		}
		defer p.Die()
		return await(p.Connected)
	}},
}

// hangUp closes a puppet's websocket and waits until the server no longer expects the puppet to resume.
func (h *house) hangUp(p *puppet.Puppet, identity string) error {
	p.Hang()
	return await(func() bool { return !h.present(identity) })
}

func greeting(identity string) *signal.Join {
	return &signal.Join{
		Version: 1, Room: "room", Identity: identity, Receive: true,
		Publications: []volumetric.Publication{visitor.Publication()},
	}
}

// puppet joins as a puppet and closes it after the visit.
func (h *house) puppet(identity string, config puppet.Config, visit func(p *puppet.Puppet) error) error {
	config.URL = h.Server.URL()
	p, err := puppet.Dial(config)
	if err != nil {
		return err
	}
	defer p.Close()
	if _, err := p.Join(greeting(identity)); err != nil {
		return err
	}
	return visit(p)
}

// present reports whether the residents see a participant.
func (h *house) present(identity string) bool {
	for _, p := range h.residents {
		for _, other := range p.Session.Participants() {
			if other.Identity == identity {
				return true
			}
		}
	}
	return false
}

// receive lets visitors join and leave, and waits until the last one has left.
func (h *house) receive(t *testing.T, visitors int) {
	t.Helper()
	numbers := make(chan int)
	var running sync.WaitGroup
	for range atOnce {
		running.Go(func() {
			for n := range numbers {
				visit := visits[n%len(visits)]
				if err := visit.do(h, fmt.Sprintf("visitor %d", n)); err != nil {
					t.Errorf("visitor %d, who %s: %v", n, visit.name, err)
				}
			}
		})
	}
	for n := range visitors {
		numbers <- n
	}
	close(numbers)
	running.Wait()
	err := await(func() bool {
		for _, p := range h.residents {
			if len(p.Session.Participants()) != len(h.residents)-1 {
				return false
			}
		}
		s := h.Server.Stats()
		return s.Receivers == len(h.residents) && s.Ingresses == len(h.residents)
	})
	if err != nil {
		t.Fatalf("participants remain: %v", err)
	}
	for _, p := range h.dead {
		p.Close()
	}
	h.dead = nil
}

// heap returns the heap in use after garbage collection. Two rounds empty sync.Pool, which keeps its content for one.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// descriptors returns the number of open files, and false if the system does not provide it.
func descriptors() (int, bool) {
	entries, err := os.ReadDir("/proc/self/fd")
	return len(entries), err == nil
}

func TestNothingLeaks(t *testing.T) {
	long.Test(t)
	h := open(t)
	// The first visitors let pools and tables grow to their usual size.
	h.receive(t, 3*len(visits))
	before, files := heap(), 0
	if n, ok := descriptors(); ok {
		files = n
	} else {
		t.Log("open files are not counted: this system has no /proc/self/fd")
	}
	goroutines := runtime.NumGoroutine()
	stats := h.Server.Stats()

	h.receive(t, joins)

	if err := await(func() bool { return runtime.NumGoroutine() <= goroutines }); err != nil {
		t.Errorf("%d goroutines, %d before: %v", runtime.NumGoroutine(), goroutines, goleak.Find())
	}
	if n, ok := descriptors(); ok {
		if err := await(func() bool { n, _ = descriptors(); return n <= files }); err != nil {
			t.Errorf("%d open files, %d before", n, files)
		}
	}
	grown := int64(0)
	if err := await(func() bool { grown = heap() - before; return grown <= heapTolerance }); err != nil {
		t.Errorf("the heap has grown by %d bytes, expected at most %d", grown, heapTolerance)
	}
	t.Logf("after %d visits: %d goroutines (%d before), heap of %d kB grown by %d kB", joins, runtime.NumGoroutine(),
		goroutines, before>>10, grown>>10)
	now := h.Server.Stats()
	if now.Tracks != stats.Tracks || now.Slots != stats.Slots {
		t.Errorf("%d tracks and %d slots, %d and %d before", now.Tracks, now.Slots, stats.Tracks, stats.Slots)
	}
	for i, p := range h.residents {
		from := tileOf([]string{"bob", "alice"}[i])
		seen := p.Tile(from).Frames
		if err := await(func() bool { return p.Tile(from).Frames > seen+5 }); err != nil {
			t.Errorf("the frames of %v do not go on: %v", from, err)
		}
		if err := p.Failure(); err != nil {
			t.Error(err)
		}
	}
}
