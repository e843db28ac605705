package client

import (
	"errors"
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

var epoch = time.Date(2026, 11, 20, 15, 30, 0, 123_456_789, time.UTC)

// published makes a publisher of a rig whose tracks are all negotiated, with SSRCs from 100 on in steps of ten. Packets
// are not numbered, so there is no estimate and no limit.
func published(t *testing.T, m *rig, description volumetric.Publication) (*Publisher, []*wire) {
	t.Helper()
	p := newPublisher(m.session.publishers, description)
	m.connect()
	var wires []*wire
	for tile := range description.Tiles {
		for q := range description.Qualities {
			ssrc := uint32(100 + 10*len(wires))
			w := newOutlet(description.Codec.MIMEType, ssrc, ssrc+1)
			wires = append(wires, w)
			p.attach(m.media, string(rune('a'+len(wires))), w, tile, volumetric.Quality(q))
		}
	}
	return p, wires
}

// flush sends the packets that are due by the given time.
func flush(m *rig, now time.Time) {
	for _, packet := range m.uplink.Depart(now, nil) {
		packet.Write()
	}
}

// reply delivers an answer about the server's clock, which is ahead by the given time.
func reply(m *rig, ahead time.Duration) {
	now := time.Now()
	there := now.Add(ahead).UnixMicro()
	m.clockReply(&signal.TimeReply{T0: now.UnixMicro(), T1: there, T2: there}, now)
}

func TestTracksOfOneInstantShareATimestamp(t *testing.T) {
	m := newRig(t, Config{})
	p, wires := published(t, m, described("body", volumetric.MIMEVolumetric, 2, 2))
	capture := time.Now()
	for track := range wires {
		if _, err := p.WriteFrame(track/2, volumetric.Quality(track%2),
			OutgoingFrame{Number: 7, Capture: capture, Data: make([]byte, 2000)}); err != nil {
			t.Fatal(err)
		}
		// The estimate of the server's clock may change at any time.
		reply(m, time.Duration(track+1)*time.Second)
	}
	flush(m, time.Now().Add(time.Second))
	want := p.present.sent.Timestamp(capture)
	for track, w := range wires {
		if len(w.sent) != 2 {
			t.Fatalf("track %d sent %d packets, want 2", track, len(w.sent))
		}
		for i, packet := range w.sent {
			var d payload.Descriptor
			if _, err := d.Unmarshal(packet.Payload); err != nil {
				t.Fatal(err)
			}
			last := i == len(w.sent)-1
			if packet.Timestamp != want || packet.Marker != last || d.Frame != 7 || int(d.Quality) != track%2 ||
				int(d.Index) != i {
				t.Errorf("track %d, packet %d: timestamp %d, marker %v, %+v; want timestamp %d", track, i,
					packet.Timestamp, packet.Marker, d, want)
			}
		}
	}
}

func TestCaptureTimesAreOfTheServersClock(t *testing.T) {
	m := newRig(t, Config{})
	p, wires := published(t, m, described("body", volumetric.MIMEVolumetric, 1, 1))
	reply(m, time.Hour)
	capture := time.Now()
	if _, err := p.WriteFrame(0, 0, OutgoingFrame{Number: 1, Capture: capture,
		Codec: volumetric.FourCC{'t', 'e', 's', 't'}, Data: []byte("tile")}); err != nil {
		t.Fatal(err)
	}
	flush(m, time.Now().Add(time.Second))
	near := func(got time.Time) bool { return got.Sub(capture.Add(time.Hour)).Abs() < time.Second }
	var prefix payload.Prefix
	rest, err := prefix.Unmarshal(wires[0].sent[0].Payload[payload.DescriptorSize:])
	if err != nil || string(rest) != "tile" || !near(prefix.Capture) {
		t.Errorf("the frame carries %q of %v (%v), want \"tile\" of about %v", rest, prefix.Capture, err,
			capture.Add(time.Hour))
	}
	reports := m.uplink.AppendReports(nil, capture.Add(10*time.Second))
	if len(reports) != 1 {
		t.Fatalf("%d sender reports after the first frame, want 1", len(reports))
	}
	report := reports[0].(*rtcp.SenderReport)
	if got, want := payload.TimeFromNTP64(report.NTPTime).Add(-10*time.Second),
		p.present.sent.Timestamp(capture)+10*90000; !near(got) || report.RTPTime != want {
		t.Errorf("the report maps %d to %v, want %d at about %v", report.RTPTime, got, want, capture.Add(time.Hour))
	}
}

func TestWriteErrors(t *testing.T) {
	m := newRig(t, Config{})
	p, wires := published(t, m, described("body", volumetric.MIMEVolumetric, 2, 2))
	frame := OutgoingFrame{Number: 1, Capture: time.Now(), Data: []byte("tile")}
	for _, track := range []volumetric.TrackRef{
		{TileRef: volumetric.TileRef{Tile: 2}, Quality: 0}, {TileRef: volumetric.TileRef{Tile: -1}, Quality: 0},
		{Quality: 2}, {Quality: -1},
	} {
		if _, err := p.WriteFrame(track.Tile, track.Quality, frame); !errors.Is(err, ErrNotPublished) {
			t.Errorf("frame of %v: got %v, want an error around %v", track, err, ErrNotPublished)
		}
		if _, err := p.WritePackets(track.Tile, track.Quality, frame.Capture, [][]byte{{1}}); !errors.Is(err,
			ErrNotPublished) {
			t.Errorf("packets of %v: got %v, want an error around %v", track, err, ErrNotPublished)
		}
	}
	m.disconnect()
	if _, err := p.WriteFrame(0, 0, frame); !errors.Is(err, ErrNotConnected) {
		t.Errorf("without connection: got %v, want an error around %v", err, ErrNotConnected)
	}
	m.agree(agreement{extension: 1})
	m.connect()
	if _, err := p.WriteFrame(0, 0, frame); err != nil {
		t.Errorf("with connection: %v", err)
	}
	flush(m, time.Now().Add(time.Second))
	p.detach()
	if _, err := p.WriteFrame(0, 0, frame); !errors.Is(err, ErrNotConnected) {
		t.Errorf("after its end: got %v, want an error around %v", err, ErrNotConnected)
	}
	if n := len(wires[0].sent); n != 1 {
		t.Errorf("%d packets were sent, want the one of the frame that was taken", n)
	}
}

func TestQualitiesOfAForeignCodecLeaveInTurn(t *testing.T) {
	m := newRig(t, Config{Spread: 1})
	p, wires := published(t, m, described("film", volumetric.MIMEH264, 1, 2))
	begin := time.Now()
	for q := range wires {
		if _, err := p.WritePackets(0, volumetric.Quality(q), begin, [][]byte{{1}, {2}, {3}}); err != nil {
			t.Fatal(err)
		}
	}
	// Each quality has half of an interval of 33 ms.
	flush(m, begin.Add(12*time.Millisecond))
	if low, high := len(wires[0].sent), len(wires[1].sent); low == 0 || high != 0 {
		t.Errorf("within the first half %d and %d packets leave, want some and none", low, high)
	}
	flush(m, begin.Add(time.Second))
	for q, w := range wires {
		for i, packet := range w.sent {
			if len(w.sent) != 3 || packet.Payload[0] != byte(i+1) || packet.Marker != (i == 2) {
				t.Errorf("quality %d sends %v", q, w.sent)
			}
		}
	}
}
