package server

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
	"github.com/volsfu/volsfu/test/interop/oldpeer"
	"github.com/volsfu/volsfu/test/wait"
)

// patience and eventually are used by all tests.
const patience = wait.Patience

var eventually = wait.Until

// errTrackText is the log text for streams with unexpected names.
const errTrackText = "stream does not belong to its line"

// stage is a server with VR2Gather's dialect, and its log.
type stage struct {
	*Server
	logs *observer.ObservedLogs
}

// newStage starts a development server, with an adjusted configuration. Without keys it has the dialect only.
func newStage(t *testing.T, adjust ...func(*config.Config)) *stage {
	t.Helper()
	c := config.DefaultConfig()
	c.Server.Dev, c.Server.Listen, c.Admin.Listen = true, "127.0.0.1:0", ""
	c.Media.Address, c.Media.Port = "127.0.0.1", 0
	c.VR2Gather.Enabled = true
	for _, a := range adjust {
		a(&c)
	}
	core, logs := observer.New(zap.InfoLevel)
	t.Cleanup(func() {
		if t.Failed() {
			for _, entry := range logs.All() {
				t.Log(entry.Message, entry.ContextMap())
			}
		}
	})
	s, err := Start(Options{Config: c, Version: "test", Log: zap.New(core),
		VR2GatherOnly: !c.Server.Dev && len(c.Auth.Keys) == 0})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		goleak.VerifyNone(t)
	})
	return &stage{Server: s, logs: logs}
}

// address returns host:port of the server, as passed to the original peer.
func (s *stage) address() string { return strings.TrimPrefix(s.URL(), "ws://") }

// refusals returns the number of refusals in the log whose reason contains the text.
func (s *stage) refusals(text string) int {
	n := 0
	for _, entry := range s.logs.FilterMessage("VR2Gather peer refused").All() {
		if strings.Contains(fmt.Sprint(entry.ContextMap()["reason"]), text) {
			n++
		}
	}
	return n
}

func (s *stage) dial(t *testing.T, c oldpeer.Config) *oldpeer.Peer {
	t.Helper()
	c.Server, c.Addresses = s.address(), "127."
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p, err := oldpeer.Dial(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func (s *stage) connect(t *testing.T, c oldpeer.Config) *oldpeer.Peer {
	t.Helper()
	p := s.dial(t, c)
	select {
	case <-p.Connected():
	case <-time.After(patience):
		t.Fatalf("not connected: %+v, %v", p.Counts(), p.Fault())
	}
	return p
}

// sums are the hashes of frames.
type sums struct {
	mu   sync.Mutex
	sums map[[32]byte]bool
}

func (s *sums) add(frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sums == nil {
		s.sums = make(map[[32]byte]bool)
	}
	s.sums[sha256.Sum256(frame)] = true
}

func (s *sums) has(frame []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sums[sha256.Sum256(frame)]
}

// frame returns a VR2Gather frame with the given number of random bytes.
func frame(codec volumetric.FourCC, size int, capture time.Time) []byte {
	data := vr2gather.NewFrameHeader(codec, size, capture).Append(nil)
	for range size / 8 {
		data = binary.LittleEndian.AppendUint64(data, rand.Uint64())
	}
	return append(data, make([]byte, size%8)...)
}

// play publishes frames of all tiles and qualities, and sound, 50 times per second until the test or the peer ends, and
// records them.
func play(t *testing.T, p *oldpeer.Peer, tiles, qualities int, sent *sums) {
	t.Helper()
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-p.Dead():
				return
			case now := <-ticker.C:
				publish(p, n, tiles, qualities, now, sent)
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		running.Wait()
	})
}

// publish writes the frames of one capture time. Every third frame of the better qualities is omitted, so that the
// peer's numbers diverge.
func publish(p *oldpeer.Peer, n, tiles, qualities int, now time.Time, sent *sums) {
	for tile := range tiles {
		for quality := range qualities {
			if quality > 0 && n%3 == 0 {
				continue
			}
			f := frame(vr2gather.CodecOctree, 500+3000*(quality+1)+n%1144, now)
			sent.add(f)
			// A peer that was killed meanwhile is not connected any more.
			_ = p.WriteTile(tile, quality, f)
		}
	}
	sound := frame(vr2gather.CodecVoice, 3840, now)
	sent.add(sound)
	_ = p.WriteAudio(sound)
}

// drain checks the frames received by an old peer, and counts them by source.
type drain struct {
	mu      sync.Mutex
	counts  map[oldpeer.Source]int
	quality map[oldpeer.Source]int
	unknown int
}

func listen(t *testing.T, p *oldpeer.Peer, sent *sums) *drain {
	t.Helper()
	d := &drain{counts: make(map[oldpeer.Source]int), quality: make(map[oldpeer.Source]int)}
	go func() {
		for f := range p.Frames() {
			d.mu.Lock()
			d.counts[f.Source]++
			d.quality[f.Source] = f.Quality
			if !sent.has(f.Data) {
				d.unknown++
			}
			d.mu.Unlock()
		}
	}()
	return d
}

func (d *drain) count(client, tile int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts[oldpeer.Source{Client: client, Tile: tile}]
}

func (d *drain) qualityOf(client, tile int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.quality[oldpeer.Source{Client: client, Tile: tile}]
}

// more waits for a number of further frames of a source.
func (d *drain) more(t *testing.T, what string, client, tile, frames int) {
	t.Helper()
	before := d.count(client, tile)
	eventually(t, what, func() bool { return d.count(client, tile) >= before+frames })
}

// sound checks at the end that there were no errors.
func (d *drain) sound(t *testing.T, name string, p *oldpeer.Peer) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unknown > 0 {
		t.Errorf("%s: %d frames that were not sent", name, d.unknown)
	}
	if err := p.Fault(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if counts := p.Counts(); counts.LostCandidates > 0 {
		t.Errorf("%s: %+v", name, counts)
	}
	for source, r := range p.Receptions() {
		if r.Rejected+r.Broken+r.Repeated > 0 {
			t.Errorf("%s: of client %d tile %d: %+v", name, source.Client, source.Tile, r)
		}
	}
}
