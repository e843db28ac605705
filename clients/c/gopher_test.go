package main_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
)

// frameSize and frameData define the expected bytes of a frame, as testdata/frames.h does.
func frameSize(number, tile, quality uint32) int {
	if tile == 1 && number%10 == 9 {
		return 0
	}
	return int(2500*(quality+1) + (number*7919+tile*104729)%2000)
}

func frameData(number, tile, quality uint32) []byte {
	data := make([]byte, frameSize(number, tile, quality))
	state := (number*2654435761 ^ tile*40503 ^ quality*97) | 1
	for i := range data {
		state ^= state << 13
		state ^= state >> 17
		state ^= state << 5
		data[i] = byte(state)
	}
	return data
}

// hashOf is FNV-1a over 64 bits.
func hashOf(data []byte) uint64 {
	hash := uint64(14695981039346656037)
	for _, b := range data {
		hash = (hash ^ uint64(b)) * 1099511628211
	}
	return hash
}

// gopher is a participant in Go: it publishes desk, of two tiles at two qualities, and records the
// received frames.
type gopher struct {
	t       *testing.T
	session *client.Session
	stop    chan struct{}
	running sync.WaitGroup

	mu     sync.Mutex
	frames []client.Frame
	events []client.Event
}

const deskTiles, deskQualities = 2, 2

// publish starts a gopher in a room until the test ends. With a passphrase, the gopher encrypts.
func publish(t *testing.T, c *testbed.Conference, room, passphrase string) *gopher {
	t.Helper()
	session, err := client.Join(t.Context(), client.Config{
		Passphrase: passphrase,
		URL:        c.Server.URL(), Room: room, Identity: "gopher", Receive: true, MinUplink: testbed.Everything,
		QueueBudget: time.Second,
		Publications: []volumetric.Publication{{
			Name: "desk", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, FrameRate: 30,
			Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
			Tiles:     make([]volumetric.Tile, deskTiles),
			Qualities: make([]volumetric.QualityLevel, deskQualities),
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	// The links are those of this host: high load must not be mistaken for a narrow link.
	if err := session.SetLimits(t.Context(), 0, testbed.Everything); err != nil {
		t.Fatal(err)
	}
	g := &gopher{t: t, session: session, stop: make(chan struct{})}
	g.running.Go(g.write)
	g.running.Go(func() {
		for frame := range session.Frames() {
			g.mu.Lock()
			g.frames = append(g.frames, frame)
			g.mu.Unlock()
		}
	})
	g.running.Go(func() {
		for event := range session.Events() {
			g.mu.Lock()
			g.events = append(g.events, event)
			g.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		close(g.stop)
		_ = session.Close()
		g.running.Wait()
	})
	return g
}

// write publishes at 30 frames per second.
func (g *gopher) write() {
	ticker := time.NewTicker(time.Second / 30)
	defer ticker.Stop()
	desk := g.session.Publisher("desk")
	for number := uint32(0); ; {
		capture, sent := time.Now(), false
		for tile := range uint32(deskTiles) {
			for quality := range uint32(deskQualities) {
				_, err := desk.WriteFrame(int(tile), volumetric.Quality(quality), client.OutgoingFrame{
					Number: number, Capture: capture, Codec: volumetric.FourCC{'d', 'e', 's', 'k'},
					Data: frameData(number, tile, quality),
				})
				if err != nil && !errors.Is(err, client.ErrNotConnected) {
					g.t.Errorf("desk: %v", err)
				}
				sent = sent || err == nil
			}
		}
		if sent {
			number++
		}
		select {
		case <-ticker.C:
		case <-g.stop:
			return
		}
	}
}

// heard counts frames of a publication with exactly these bytes.
func (g *gopher) heard(participant, publication string, data []byte) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	count := 0
	for _, frame := range g.frames {
		if frame.Track.Participant == participant && frame.Track.Publication == publication &&
			bytes.Equal(frame.Data, data) {
			count++
		}
	}
	return count
}

// received counts frames of a tile at a quality, starting at a position in the list of all frames,
// and compares their bytes with the expected ones.
func (g *gopher) received(from, tile int, quality volumetric.Quality) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	count := 0
	for _, frame := range g.frames[from:] {
		want := volumetric.TileRef{
			PublicationRef: volumetric.PublicationRef{Participant: "carol", Publication: "body"},
			Tile:           tile,
		}
		if frame.Track.TileRef != want || frame.Track.Quality != quality {
			continue
		}
		if !bytes.Equal(frame.Data, frameData(uint32(frame.Number), uint32(tile), uint32(quality))) ||
			frame.Codec.String() != "test" {
			g.t.Errorf(
				"%v frame %d of codec %q came with other bytes than were written",
				frame.Track,
				frame.Number,
				frame.Codec,
			)
		}
		count++
	}
	return count
}

func (g *gopher) frameCount() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.frames)
}

// posed reports whether this pose of carol's object was received.
func (g *gopher) posed(x float64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, event := range g.events {
		if e, ok := event.(client.PoseChanged); ok && e.Pose.Position[0] == x && len(e.Pose.Boxes) == 2 {
			return true
		}
	}
	return false
}
