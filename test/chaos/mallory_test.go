package chaos

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/e2e/puppet"
	"github.com/volsfu/volsfu/test/wait"
)

// mallory is the fifth participant. It publishes and receives like the others, except for what a test makes it do.
type mallory struct {
	*puppet.Puppet
	random  *rand.Rand
	stop    context.CancelFunc
	sending sync.WaitGroup
}

// dial connects a puppet that is closed with the test.
func (r *room) dial(t *testing.T, config puppet.Config) *puppet.Puppet {
	t.Helper()
	config.URL = r.Server.URL()
	p, err := puppet.Dial(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// greeting is the join of a participant that behaves like the others.
func greeting(name string) *signal.Join {
	return &signal.Join{Version: 1, Room: "room", Identity: name, Receive: true,
		Publications: []volumetric.Publication{load.Publication()}}
}

// mallory lets the fifth participant join, and waits until it and the others have each other's frames.
func (r *room) mallory(t *testing.T, config puppet.Config) *mallory {
	t.Helper()
	return r.fifth(t, "mallory", config)
}

// fifth lets mallory join under any name.
func (r *room) fifth(t *testing.T, identity string, config puppet.Config) *mallory {
	t.Helper()
	var mu sync.Mutex
	heard := map[uint32]bool{}
	config.RTP = func(ssrc uint32, _ []byte) {
		mu.Lock()
		defer mu.Unlock()
		heard[ssrc] = true
	}
	running, stop := context.WithCancel(context.Background())
	m := &mallory{Puppet: r.dial(t, config), random: rand.New(rand.NewPCG(1, 2)), stop: stop}
	t.Cleanup(m.rest)
	seen := map[string]int{}
	for _, name := range r.names {
		seen[name] = r.received(name, identity)
	}
	if _, err := m.Join(greeting(identity)); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "mallory is connected", m.Connected)
	m.sending.Go(func() { m.behave(running) })
	for _, name := range r.names {
		wait.Until(t, name+" has mallory's frames", func() bool { return r.received(name, identity) > seen[name] })
	}
	streams := (len(r.names)) * load.Tiles
	wait.Until(t, "mallory has packets of all others", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(heard) >= streams
	})
	return m
}

// received returns the number of frames that one participant has of another. The others do not check the content of
// Mallory's frames.
func (r *room) received(by, from string) int {
	reception := r.peers[by].Tile(tileOf(from, 0))
	return reception.Frames + reception.Corrupt
}

// behave sends frames as the others do.
func (m *mallory) behave(ctx context.Context) {
	ticker := time.NewTicker(time.Duration(float64(time.Second) / load.Rate))
	defer ticker.Stop()
	for number := uint32(1); ; number++ {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		for _, line := range m.lines() {
			if packets, err := line.Frame(number, make([]byte, load.FrameBytes)); err == nil {
				_ = line.Write(packets...)
			}
		}
	}
}

// rest stops valid sending, so that the test can use the lines.
func (m *mallory) rest() {
	m.stop()
	m.sending.Wait()
}

// lines are those of mallory's tracks.
func (m *mallory) lines() []*puppet.Line {
	var lines []*puppet.Line
	for tile := range load.Tiles {
		for q := range volumetric.Quality(load.Qualities) {
			if line := m.Line(puppet.Track{Publication: load.Name, Tile: tile, Quality: q}); line != nil {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// depart leaves properly.
func (m *mallory) depart(t *testing.T) {
	t.Helper()
	m.rest()
	if _, err := m.Request(&signal.Leave{}); err != nil {
		t.Error(err)
	}
	ended(t, m.Puppet)
}

// ended waits for the end of a puppet's websocket.
func ended(t *testing.T, p *puppet.Puppet) {
	t.Helper()
	select {
	case <-p.Ended():
	case <-time.After(patience):
		t.Fatal("the server did not close the websocket")
	}
}

// alive checks that the server still answers a puppet.
func alive(t *testing.T, p *puppet.Puppet) {
	t.Helper()
	if _, err := p.Request(&signal.Time{}); err != nil {
		t.Errorf("the server answers no more: %v", err)
	}
}

// contextWithPatience limits one request.
func contextWithPatience() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

// writeFrame sends a frame on the first track of a publication.
func writeFrame(p *client.Publisher, number uint32) error {
	_, err := p.WriteFrame(0, 0, client.OutgoingFrame{Number: number, Capture: time.Now(),
		Data: make([]byte, load.FrameBytes)})
	return err
}
