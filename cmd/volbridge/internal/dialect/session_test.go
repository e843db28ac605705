package dialect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
	"github.com/volsfu/volsfu/test/interop/standin"
	"github.com/volsfu/volsfu/test/wait"
)

// patience is the time limit on a busy machine.
const patience = 30 * time.Second

// recorder is a sink that keeps all tracks and packets.
type recorder struct {
	mu      sync.Mutex
	tracks  map[vr2gather.Track]bool
	packets []vr2gather.Packet
}

func (h *recorder) Opened(track vr2gather.Track) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tracks[track] = true
}

func (h *recorder) Packet(kind volumetric.Kind, payload []byte, _ time.Time) {
	p, err := vr2gather.ParsePacket(kind, append([]byte(nil), payload...))
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.packets = append(h.packets, p)
}

// has reports whether a packet arrived that begins with the text.
func (h *recorder) has(kind volumetric.Kind, text string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.packets {
		if p.Kind == kind && strings.HasPrefix(string(p.Data), text) {
			return true
		}
	}
	return false
}

// serve starts a stand-in for the original server, which ends with the test, and returns the address of the websocket.
func serve(t *testing.T, faults standin.Faults) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := standin.Start(standin.Config{Listener: listener, Addresses: "127.", Faults: faults})
	t.Cleanup(func() {
		s.Close()
		goleak.VerifyNone(t)
	})
	return "ws://" + s.Address() + vr2gather.WebsocketPath
}

func join(t *testing.T, url string, client uint32) (*Session, *recorder, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	h := &recorder{tracks: make(map[vr2gather.Track]bool)}
	query := vr2gather.Query{Client: client, Tiles: 2, Qualities: 2}
	s, err := Join(ctx, Config{URL: url, Query: query, Sink: h, Log: slog.New(slog.DiscardHandler)})
	return s, h, err
}

// TestTwoSessions connects two clients, which exchange tiles and audio, through a server that sends candidates before
// the offer and makes two offers in quick succession.
func TestTwoSessions(t *testing.T) {
	url := serve(t, standin.Faults{CandidatesFirst: true, SecondOffer: true, Padding: true, StrictNumbers: true})
	var sessions [2]*Session
	var sinks [2]*recorder
	for i := range sessions {
		var err error
		if sessions[i], sinks[i], err = join(t, url, uint32(i+1)); err != nil {
			t.Fatal(err)
		}
		defer sessions[i].Close()
	}
	number := uint32(0)
	write := func(s *Session, kind volumetric.Kind, tile, quality uint32) {
		text := fmt.Appendf(nil, "%d %s %d %d", s.config.Query.Client, kind, tile, quality)
		p := vr2gather.Packet{Kind: kind, Client: s.config.Query.Client, Frame: number, Length: uint32(len(text)),
			Tile: tile, Quality: quality, Data: text}
		if err := s.WritePacket(&p, number*3000); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, "each has both tiles and the sound of the other", func() bool {
		number++
		arrived := true
		for i, s := range sessions {
			write(s, volumetric.KindAudio, 0, 0)
			for tile := range uint32(2) {
				write(s, volumetric.KindVideo, tile, 0)
				arrived = arrived && sinks[1-i].has(volumetric.KindVideo, fmt.Sprintf("%d video %d 0", i+1, tile))
			}
			arrived = arrived && sinks[1-i].has(volumetric.KindAudio, fmt.Sprintf("%d audio", i+1))
		}
		return arrived
	})
	sessions[1].Choose("1,1,1")
	sessions[1].Choose("1,1,1;")
	wait.Until(t, "the other quality comes", func() bool {
		number++
		write(sessions[0], volumetric.KindVideo, 1, 1)
		return sinks[1].has(volumetric.KindVideo, "1 video 1 1")
	})
	if outside := (vr2gather.Packet{Kind: volumetric.KindVideo, Tile: 2, Length: 1,
		Data: []byte{0}}); !errors.Is(sessions[0].WritePacket(&outside, 0), ErrTrack) {
		t.Error("a tile that was not announced is sent")
	}
	sessions[0].Close()
	if err := sessions[0].Err(); !errors.Is(err, ErrClosed) {
		t.Errorf("closed with %v", err)
	}
	if names := sinks[1].tracks; !names[vr2gather.Track{Kind: volumetric.KindVideo, Client: 1, Tile: 1,
		Quality: volumetric.QualityOff}] {
		t.Errorf("tracks are %v, expected the second tile of client 1", names)
	}
}

// TestSessionEnds uses servers that send invalid messages.
func TestSessionEnds(t *testing.T) {
	for name, test := range map[string]struct {
		faults standin.Faults
		want   error
	}{
		"offer":   {standin.Faults{BadOffer: true}, ErrEnded},
		"message": {standin.Faults{ShortMessage: true}, vr2gather.ErrMessage},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, err := join(t, serve(t, test.faults), 1)
			if err == nil {
				defer s.Close()
				<-s.Done()
				err = s.Err()
			}
			if !errors.Is(err, ErrEnded) || !errors.Is(err, test.want) {
				t.Errorf("%v, expected %v, wrapped in %v", err, test.want, ErrEnded)
			}
		})
	}
	t.Run("candidate", func(t *testing.T) {
		s, _, err := join(t, serve(t, standin.Faults{BadCandidate: true}), 1)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	})
}

// TestRefusals distinguishes servers that refuse a client from absent servers.
func TestRefusals(t *testing.T) {
	defer goleak.VerifyNone(t)
	for status, refused := range map[int]bool{
		http.StatusUnauthorized: true, http.StatusForbidden: true, http.StatusBadRequest: true,
		http.StatusServiceUnavailable: false, http.StatusNotFound: false,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
			_ *http.Request) {
			http.Error(w, "because", status)
		}))
		_, _, err := join(t, "ws"+strings.TrimPrefix(server.URL, "http"), 1)
		server.Close()
		if errors.Is(err, ErrRefused) != refused || err == nil || refused && !strings.Contains(err.Error(), "because") {
			t.Errorf("status %d: %v", status, err)
		}
	}
	if _, _, err := join(t, "ws://127.0.0.1:1/websocket", 1); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("nobody is there: %v", err)
	}
}
