package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/production"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

// fakePublisher accepts frames and packets.
type fakePublisher struct {
	mu      sync.Mutex
	frames  int
	packets int
	err     error
	choosy  bool
}

// Wanted reports that the highest quality of tile 1 has no receiver, and that the uplink cannot carry that of tile 0,
// if choosy is set.
func (p *fakePublisher) Wanted(_ int, quality volumetric.Quality) bool {
	return !p.choosy || quality < 2
}

func (p *fakePublisher) GaveUp(tile int, quality volumetric.Quality) bool {
	return p.choosy && tile == 0 && quality == 2
}

func (p *fakePublisher) WriteFrame(int, volumetric.Quality, client.OutgoingFrame) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frames++
	return p.err == nil, p.err
}

func (p *fakePublisher) WritePackets(_ int, _ volumetric.Quality, _ time.Time, payloads [][]byte) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.packets += len(payloads)
	return p.err == nil, p.err
}

func (p *fakePublisher) enough() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frames >= 60 && p.packets >= 10
}

// prepared makes a broadcast of a small figure at 200 frames per second.
func prepared(t *testing.T, sink *fakePublisher) *broadcast {
	t.Helper()
	p := &options{
		Options: production.Options{Tiles: 2, Qualities: "low,mid,high", Codec: "raw", Name: "body",
			Mode: "alternatives"},
		audio: "tone",
	}
	p.room.Token = "some"
	log := slog.New(slog.DiscardHandler)
	settings, err := p.check(log)
	if err != nil {
		t.Fatal(err)
	}
	source, err := capture.Open("synthetic", capture.Options{FPS: 200, Points: 300})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	// Delays of the machine are not the subject.
	settings.Limit = time.Hour
	b, err := p.prepare(t.Context(), settings, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.producer.Close)
	b.sink, b.voice, b.console, b.log = sink, sink, &console{}, log
	return b
}

func TestBroadcast(t *testing.T) {
	sink := &fakePublisher{}
	b := prepared(t, sink)
	session := newFakePresence()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- b.run(ctx, session, 0) }()
	session.events <- client.ParticipantJoined{}
	session.events <- client.Connected{}
	wait.Until(t, "frames and sound", sink.enough)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	s := b.summary()
	if s.FramesPublished < 10 || s.TileFramesSent != 6*s.FramesPublished || s.TileFramesSent != int64(sink.frames) ||
		s.Audio.PacketsSent != int64(sink.packets) ||
		s.FramesCaptured < s.FramesPublished || s.Encode.P50 == nil || s.FPS <= 0 || s.Bitrate <= 0 || s.Tiles != 2 ||
		s.Qualities[2].Name != "high" {
		t.Errorf("got %+v", s)
	}
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
}

// TestBroadcastPauses checks that unwanted qualities, and qualities that the uplink cannot carry, are not encoded, and
// that the summary reports them.
func TestBroadcastPauses(t *testing.T) {
	sink := &fakePublisher{choosy: true}
	b := prepared(t, sink)
	session := newFakePresence()
	session.uplink = client.UplinkStats{Estimate: 5e6, GaveUp: []signal.OwnTrack{{Publication: "body", Quality: 2}},
		UplinkCounts: client.UplinkCounts{Dropped: 3, ProbeBytes: 7}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- b.run(ctx, session, 0) }()
	session.events <- client.Connected{}
	wait.Until(t, "frames and sound", sink.enough)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	s := b.summary()
	if n := s.FramesPublished; s.TileFramesSent != 4*n || s.TileFramesPaused != n || s.TileFramesGivenUp != n ||
		s.TileFramesDropped != 3 || s.BitsSaved < 8*n {
		t.Errorf("got %+v", s)
	}
	if u := s.Uplink; u.Estimate != 5e6 || len(u.GaveUp) != 1 || u.ProbeBytes != 7 {
		t.Errorf("got uplink %+v", u)
	}
	if line := producedLine("body", &b.total, 5e6, time.Second); !strings.Contains(line,
		fmt.Sprintf("paused %d  given up %d", s.TileFramesPaused, s.TileFramesGivenUp)) ||
		!strings.HasSuffix(line, "uplink 5 Mbit/s") {
		t.Errorf("got line %q", line)
	}
}

func TestBroadcastEnds(t *testing.T) {
	gone := errors.New("gone")
	t.Run("before it began", func(t *testing.T) {
		session := newFakePresence()
		session.err = gone
		close(session.done)
		if err := prepared(t, &fakePublisher{}).run(t.Context(), session, 0); !errors.Is(err, gone) {
			t.Errorf("expected the session's error, got %v", err)
		}
	})
	t.Run("with its session", func(t *testing.T) {
		session := newFakePresence()
		session.err = gone
		session.events <- client.Connected{}
		sink := &fakePublisher{err: client.ErrNotConnected}
		b := prepared(t, sink)
		ended := make(chan error)
		go func() { ended <- b.run(t.Context(), session, 0) }()
		wait.Until(t, "frames and sound", sink.enough)
		close(session.done)
		if err := <-ended; !errors.Is(err, gone) {
			t.Errorf("expected the session's error, got %v", err)
		}
		if s := b.summary(); s.TileFramesSent != 0 || s.TileFramesUnsent == 0 || s.Audio.PacketsUnsent == 0 ||
			s.Bitrate != 0 {
			t.Errorf("expected everything to be unsent, got %+v", s)
		}
	})
	t.Run("with an error of the sink", func(t *testing.T) {
		session := newFakePresence()
		session.events <- client.Connected{}
		if err := prepared(t, &fakePublisher{err: gone}).run(t.Context(), session, 0); !errors.Is(err, gone) {
			t.Errorf("expected the sink's error, got %v", err)
		}
	})
	t.Run("after its time", func(t *testing.T) {
		session := newFakePresence()
		session.events <- client.Connected{}
		if err := prepared(t, &fakePublisher{}).run(t.Context(), session, 0.05); err != nil {
			t.Errorf("expected no error, got %v", err)
		}
	})
}
