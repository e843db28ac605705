package egress

import (
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
)

// TestRestartedSequenceNumbers restarts a publisher's sequence numbers. The slot continues without a gap.
func TestRestartedSequenceNumbers(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	p := r.publish(i, 10, volumetric.MIMEVolumetric)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(p.track, 1, r.now)
	r.run()
	for n := range 6 {
		if n == 3 {
			p.Sequence += 30000
		}
		r.now = r.now.Add(frameInterval)
		p.Next()
		p.Send(r.now, p.Packets(3000)...)
		r.run()
	}
	got := s.outlet.sent()
	checkContinuous(t, got)
	// The first packet after the jump is not accepted, so frame 4 lacks its start and the slot continues at frame 5.
	if f := frames(t, got); f[3] != 3 || f[4] != 0 || f[5] != 3 || f[6] != 3 {
		t.Errorf("packets by frame are %v", f)
	}
	if got := asked(r.stepped(i, 200*time.Millisecond), 10); len(got) != 0 {
		t.Errorf("asked for %d packets that never were", len(got))
	}
}

// TestFrameNumbersWrapAround crosses 2^32 on one track before another track of the publication begins.
func TestFrameNumbersWrapAround(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	var tracks []*publisher
	for q := range 2 {
		ssrc := uint32(10 + 10*q)
		track := r.engine.NewTrack(track.Config{Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric,
			ClockRate: 90000}, Group: 5})
		i.Bind(ssrc, ssrc+1, track)
		p := &forwardtest.Publisher{T: t, To: i, SSRC: ssrc, Number: 1<<32 - 3}
		tracks = append(tracks, &publisher{Publisher: p, ingress: i, track: track})
	}
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(tracks[0].track, 5, r.now)
	r.run()
	for n := range 12 {
		r.now = r.now.Add(frameInterval)
		for q, p := range tracks {
			p.Next()
			if packets := p.Packets(3000); q == 0 || n > 5 {
				p.Send(r.now, packets...)
			}
		}
		r.run()
		if n == 7 {
			s.slot.Select(tracks[1].track, 5, r.now)
			r.run()
		}
	}
	got := s.outlet.sent()
	checkContinuous(t, got)
	if n := len(frames(t, got)); n != 12 {
		t.Errorf("%d frames went out, expected all 12", n)
	}
	if switched := s.switches(); len(switched) != 2 || switched[1] != tracks[1].track {
		t.Errorf("switched %d times, expected to both tracks", len(switched))
	}
}

// TestPaddingAndExtensions checks that padding and extensions of the publisher's hop are removed.
func TestPaddingAndExtensions(t *testing.T) {
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEOpaque)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(p.track, 1, r.now)
	r.run()
	for range 3 {
		p.Next()
		packet := rtp.Packet{
			Header: rtp.Header{
				Version: 2, Padding: true, PaddingSize: 20, Marker: true, SequenceNumber: p.Sequence,
				Timestamp: p.Timestamp, SSRC: 10, CSRC: []uint32{1, 2},
			},
			Payload: []byte("payload"),
		}
		if err := packet.SetExtension(3, []byte{1, 2}); err != nil {
			t.Fatal(err)
		}
		raw, err := packet.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		p.Sequence++
		p.Send(r.now, raw)
	}
	// A packet of padding only has a number, so it is forwarded, empty.
	probe := rtp.Packet{Header: rtp.Header{Version: 2, Padding: true, PaddingSize: 100, SequenceNumber: p.Sequence,
		Timestamp: p.Timestamp, SSRC: 10}}
	raw, err := probe.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	p.Sequence++
	p.Send(r.now, raw)
	p.Next()
	p.Send(r.now, p.Packet([]byte("payload"), true))
	r.run()
	got := s.outlet.sent()
	checkContinuous(t, got)
	if len(got) != 4 {
		t.Fatalf("%d packets were sent, expected 4", len(got))
	}
	for n, packet := range got {
		if packet.Padding || packet.Extension || len(packet.CSRC) != 0 {
			t.Errorf("header of packet %d is %v", n, packet.Header)
		}
		want := "payload"
		if n == 2 {
			want = ""
		}
		if string(packet.Payload) != want {
			t.Errorf("payload of packet %d is %q, expected %q", n, packet.Payload, want)
		}
	}
	if stats := r.engine.Stats(); stats.Received.Probe.Packets != 1 || stats.Received.Media.Packets != 4 {
		t.Errorf("received %+v, expected 4 media packets and 1 probe", stats.Received)
	}
}

func TestBinding(t *testing.T) {
	r := newRig(t, nil)
	one, two := r.ingress(&fakePeer{}), r.ingress(&fakePeer{})
	p := r.publish(one, 10, volumetric.MIMEOpaque)
	count := func() uint64 { return p.track.Stats().Packets }
	p.Send(r.now, p.Packet([]byte{1}, true))
	one.Bind(10, 11, p.track)
	p.Send(r.now, p.Packet([]byte{2}, true))
	if count() != 2 {
		t.Fatalf("%d packets came, expected 2", count())
	}
	// Another SSRC, another connection.
	one.Bind(30, 31, p.track)
	p.Send(r.now, p.Packet([]byte{3}, true))
	if count() != 2 {
		t.Error("a packet came with the former SSRC")
	}
	p.SSRC = 30
	p.Send(r.now, p.Packet([]byte{4}, true))
	if count() != 3 {
		t.Error("no packet came with the new SSRC")
	}
	two.Bind(30, 0, p.track)
	p.Send(r.now, p.Packet([]byte{5}, true))
	if count() != 4 {
		t.Error("no packet came through the former connection before the first one of the new connection")
	}
	p.moveTo(two)
	p.Next()
	p.Send(r.now, p.Packet([]byte{6}, true))
	if count() != 5 {
		t.Error("no packet came through the new connection")
	}
	p.moveTo(one)
	p.Send(r.now, p.Packet([]byte{6}, true))
	if count() != 5 {
		t.Error("a packet came through the former connection")
	}
	p.moveTo(two)
	// Another track takes the SSRC.
	other := r.engine.NewTrack(track.Config{Codec: volumetric.Codec{MIMEType: volumetric.MIMEOpaque, ClockRate: 90000}})
	two.Bind(30, 0, other)
	p.Send(r.now, p.Packet([]byte{7}, true))
	if count() != 5 || other.Stats().Packets != 1 {
		t.Error("the packet did not come on the track that took the SSRC")
	}
	other.Close()
	p.Send(r.now, p.Packet([]byte{8}, true))
	two.Bind(30, 0, other)
	p.Send(r.now, p.Packet([]byte{9}, true))
	if stats := other.Stats(); stats.Packets != 1 || stats.CacheBytes != 0 {
		t.Errorf("a closed track has %d packets and %d bytes, expected 1 and 0", stats.Packets, stats.CacheBytes)
	}
	if n := r.engine.Stats().Tracks; n != 1 {
		t.Errorf("%d tracks are open, expected 1", n)
	}
}

// TestPublisherThatComesBack binds a track to a new connection, whose sequence numbers start at a random value. The
// slot continues without a gap.
func TestPublisherThatComesBack(t *testing.T) {
	race.SkipSequential(t)
	for _, distance := range []uint16{1, 100, 20000, 1 << 15, 50000, 65000, 65535} {
		r := newRig(t, nil)
		one, two := r.ingress(&fakePeer{}), r.ingress(&fakePeer{})
		p := r.publish(one, 10, volumetric.MIMEVolumetric)
		s := r.subscribe(1000, volumetric.KindVideo)
		s.slot.Select(p.track, 1, r.now)
		r.run()
		for n := range 60 {
			if n == 40 {
				one.Close()
				two.Bind(50, 51, p.track)
				p.moveTo(two)
				p.SSRC, p.RTX = 50, 51
				p.Sequence += distance
			}
			r.now = r.now.Add(frameInterval)
			p.Next()
			p.Send(r.now, p.Packets(3000)...)
			r.run()
		}
		got := s.outlet.sent()
		checkContinuous(t, got)
		if len(got) != 180 {
			t.Errorf("numbers %d later: %d packets were sent, expected 180", distance, len(got))
		}
		s.nack(t, r.now, got[125].SequenceNumber)
		r.run()
		repairs := s.outlet.repaired()
		if len(repairs) != 1 {
			t.Fatalf("numbers %d later: %d packets were retransmitted, expected 1", distance, len(repairs))
		}
		checkRepair(t, repairs[0], got[125], 97)
		p.Packet(nil, false) // lost
		p.Next()
		p.Send(r.now, p.Packets(5000)...)
		if numbers := asked(r.stepped(two, 5*time.Millisecond), 50); len(numbers) != 1 || numbers[0] != p.Sequence-6 {
			t.Errorf("numbers %d later: asked for %v, expected %d", distance, numbers, p.Sequence-6)
		}
	}
}
