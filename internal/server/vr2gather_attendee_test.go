package server

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// attendee is a participant of signalling v1 that publishes one tile for VR2Gather peers, and one that they cannot
// decode.
type attendee struct {
	*client.Session
	mu       sync.Mutex
	frames   map[string]int
	sounds   int
	unknown  int
	codecs   map[string]string
	partials map[uint32][]byte
}

func attend(t *testing.T, s *stage, identity string, sent *sums) *attendee {
	t.Helper()
	video := func(name string, flagged bool) volumetric.Publication {
		return volumetric.Publication{
			Name: name, Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, VR2Gather: flagged,
			FrameRate: 50,
			Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
			Tiles:     make([]volumetric.Tile, 1), Qualities: make([]volumetric.QualityLevel, 2),
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	session, err := client.Join(ctx, client.Config{
		URL: s.URL(), Room: "vr2gather", Identity: identity, Receive: true, MinUplink: 1e9, StartUplink: 1e9,
		Publications: []volumetric.Publication{video("points", true), video("plain", false)},
	})
	if err != nil {
		t.Fatal(err)
	}
	a := &attendee{Session: session, frames: make(map[string]int), codecs: make(map[string]string),
		partials: make(map[uint32][]byte)}
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { a.hear(stop, sent) })
	running.Go(func() { a.speak(stop, sent) })
	t.Cleanup(func() {
		close(stop)
		running.Wait()
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func (a *attendee) hear(stop <-chan struct{}, sent *sums) {
	for {
		select {
		case <-stop:
			return
		case f := <-a.Frames():
			a.mu.Lock()
			a.frames[fmt.Sprintf("%s/%d", f.Track.Participant, f.Track.Tile)]++
			if !sent.has(f.Whole) || f.Codec != vr2gather.CodecOctree {
				a.unknown++
			}
			a.mu.Unlock()
		case p := <-a.Packets():
			a.mu.Lock()
			a.assemble(p, sent)
			a.mu.Unlock()
		case e := <-a.Events():
			a.mu.Lock()
			if published, ok := e.(client.Published); ok {
				a.codecs[published.Participant+"/"+published.Publication.Name] = published.Publication.Codec.Format
			}
			a.mu.Unlock()
		}
	}
}

// assemble reassembles sound, whose packets arrive in order here.
func (a *attendee) assemble(p client.Packet, sent *sums) {
	packet, err := vr2gather.ParsePacket(volumetric.KindAudio, p.Payload)
	if err != nil || !p.Codec.Is("audio/pcm") {
		a.unknown++
		return
	}
	a.partials[packet.Frame] = append(a.partials[packet.Frame], packet.Data...)
	if data := a.partials[packet.Frame]; len(data) == int(packet.Length) {
		a.sounds++
		if !sent.has(data) {
			a.unknown++
		}
	}
}

// speak publishes both objects at both qualities.
func (a *attendee) speak(stop <-chan struct{}, sent *sums) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for n := uint32(0); ; n++ {
		select {
		case <-stop:
			return
		case now := <-ticker.C:
			for quality := range volumetric.Quality(2) {
				whole := frame(vr2gather.CodecOctree, 4000+2000*int(quality), now)
				sent.add(whole)
				_, _ = a.Publisher("points").WriteFrame(0, quality,
					client.OutgoingFrame{Number: n, Capture: now, Data: whole})
				plain := client.OutgoingFrame{Number: n, Capture: now, Codec: volumetric.FourCC{'r', 'a', 'w', '0'},
					Data: bytes.Repeat([]byte{1}, 3000)}
				_, _ = a.Publisher("plain").WriteFrame(0, quality, plain)
			}
		}
	}
}

func (a *attendee) count(what string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if what == "sound" {
		return a.sounds
	}
	return a.frames[what]
}

func (a *attendee) more(t *testing.T, what, source string, frames int) {
	t.Helper()
	before := a.count(source)
	eventually(t, what, func() bool { return a.count(source) >= before+frames })
}
