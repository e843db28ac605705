package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
)

// NAL unit types of H264 (RFC 6184 section 1.3).
const (
	nalSlice = 1
	nalIDR   = 5
)

// foreignPublisher publishes frames of three packets, of a codec without payload v1, at 30 frames per second. Every
// payload has a type, the quality, the frame's number and the packet's index; it answers a request for a key frame with
// the next frame.
type foreignPublisher struct {
	session *client.Session
	stop    context.CancelFunc
	running sync.WaitGroup
}

func publishForeign(t *testing.T, c *testbed.Conference, codec volumetric.Codec, qualities int) *foreignPublisher {
	t.Helper()
	kind := volumetric.KindVideo
	if codec.Is(volumetric.MIMEOpus) {
		kind = volumetric.KindAudio
	}
	publication := volumetric.Publication{
		Name: "camera", Kind: kind, Mode: volumetric.ModeAlternatives, Codec: codec, FrameRate: 30,
		Tiles: make([]volumetric.Tile, 1), Qualities: make([]volumetric.QualityLevel, qualities),
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	session, err := client.Join(ctx, client.Config{
		URL: c.Server.URL(), Room: "room", Identity: "alice", Publications: []volumetric.Publication{publication},
	})
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(context.Background())
	p := &foreignPublisher{session: session, stop: stop}
	p.running.Add(1)
	go p.run(running, qualities)
	t.Cleanup(func() {
		stop()
		_ = session.Close()
		p.running.Wait()
	})
	return p
}

func (p *foreignPublisher) run(ctx context.Context, qualities int) {
	defer p.running.Done()
	ticker := time.NewTicker(time.Second / 30)
	defer ticker.Stop()
	publisher := p.session.Publisher("camera")
	wanted := map[volumetric.Quality]bool{}
	for number := uint32(0); ; number++ {
		select {
		case <-ctx.Done():
			return
		case e := <-p.session.Events():
			if k, ok := e.(client.KeyFrameWanted); ok {
				wanted[k.Quality] = true
			}
			continue
		case now := <-ticker.C:
			for q := range volumetric.Quality(qualities) {
				nal := byte(nalSlice)
				if wanted[q] {
					nal = nalIDR
				}
				if taken, _ := publisher.WritePackets(0, q, now, foreignPayloads(nal, q, number)); taken {
					delete(wanted, q)
				}
			}
		}
	}
}

func foreignPayloads(nal byte, q volumetric.Quality, number uint32) [][]byte {
	var payloads [][]byte
	for index := range 3 {
		payload := append([]byte{nal, byte(q), byte(index)}, make([]byte, 600)...)
		binary.BigEndian.PutUint32(payload[3:], number)
		payloads = append(payloads, payload)
	}
	return payloads
}

// watchForeign joins as a receiver.
func watchForeign(t *testing.T, c *testbed.Conference) *client.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	session, err := client.Join(ctx, client.Config{URL: c.Server.URL(), Room: "room", Identity: "bob", Receive: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// nextPacket waits for a packet.
func nextPacket(t *testing.T, s *client.Session) client.Packet {
	t.Helper()
	select {
	case p := <-s.Packets():
		return p
	case <-time.After(patience):
		t.Fatal("no packet arrived")
		return client.Packet{}
	}
}

func TestH264SwitchesAtKeyFramesOnly(t *testing.T) {
	c := startConference(t, wide)
	publishForeign(t, c, volumetric.Codec{MIMEType: volumetric.MIMEH264, ClockRate: 90000}, 2)
	bob := watchForeign(t, c)
	camera := volumetric.PublicationRef{Participant: "alice", Publication: "camera"}
	expect := volumetric.Quality(1)
	var previous client.Packet
	for switches := 0; switches < 6; {
		p := nextPacket(t, bob)
		quality := volumetric.Quality(p.Payload[1])
		if previous.Payload != nil && p.SequenceNumber != previous.SequenceNumber+1 {
			t.Fatalf("number %d follows %d", p.SequenceNumber, previous.SequenceNumber)
		}
		began := previous.Payload == nil || previous.Payload[1] != p.Payload[1]
		if began && (p.Payload[0] != nalIDR || p.Payload[2] != 0) {
			t.Fatalf("quality %d begins with NAL type %d, packet %d of its frame", quality, p.Payload[0], p.Payload[2])
		}
		if began && previous.Payload != nil && previous.Payload[2] != 2 {
			t.Fatalf("the frame before the switch ended with packet %d", previous.Payload[2])
		}
		if previous.Payload != nil && int32(p.Timestamp-previous.Timestamp) < 0 {
			t.Fatalf("timestamp %d follows %d", p.Timestamp, previous.Timestamp)
		}
		if p.Marker != (p.Payload[2] == 2) {
			t.Fatalf("packet %d of a frame has marker %v", p.Payload[2], p.Marker)
		}
		if quality == expect && p.Payload[2] == 2 {
			switches++
			expect = 1 - expect
			choice := signal.Choice{PublicationRef: camera, Quality: signal.Only(expect)}
			if err := bob.SetQuality(context.Background(), choice); err != nil {
				t.Fatal(err)
			}
		}
		previous = p
	}
}

func TestUnknownCodecIsForwarded(t *testing.T) {
	c := startConference(t, wide)
	codec := volumetric.Codec{MIMEType: "video/x-gpcc", ClockRate: 90000, Format: "profile=7"}
	publishForeign(t, c, codec, 2)
	bob := watchForeign(t, c)
	for range 30 {
		p := nextPacket(t, bob)
		if p.Codec != codec {
			t.Fatalf("codec is %+v, expected %+v", p.Codec, codec)
		}
		// Each estimate starts with the rate that any link is assumed to carry.
		if len(p.Payload) < 7 || p.Payload[1] > 1 || p.Payload[2] > 2 {
			t.Fatalf("a payload that begins with %x", p.Payload[:min(len(p.Payload), 7)])
		}
		want := foreignPayloads(nalSlice, volumetric.Quality(p.Payload[1]),
			binary.BigEndian.Uint32(p.Payload[3:]))[p.Payload[2]]
		if !bytes.Equal(p.Payload, want) {
			t.Fatal("the payload differs from the sent one")
		}
	}
}

func TestAudioIsForwardedWithItsCaptureTimes(t *testing.T) {
	c := startConference(t, wide)
	publishForeign(t, c, volumetric.Codec{MIMEType: volumetric.MIMEOpus, ClockRate: 48000, Channels: 2}, 1)
	bob := watchForeign(t, c)
	deadline := time.Now().Add(patience)
	for {
		p := nextPacket(t, bob)
		if p.Marker {
			t.Fatal("audio has a marker")
		}
		if !p.Capture.IsZero() {
			if age := p.Arrival.Sub(p.Capture); age < 0 || age > patience {
				t.Fatalf("the packet is %v old on arrival", age)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no sender report arrived")
		}
	}
}
