package client

import (
	"errors"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestWantedTracks(t *testing.T) {
	m := newRig(t, Config{})
	p, wires := published(t, m, described("body", volumetric.MIMEVolumetric, 2, 2))
	m.session.publishers.add(p)
	write := func(number uint32) {
		t.Helper()
		for track := range wires {
			wanted := p.Wanted(track/2, volumetric.Quality(track%2))
			taken, err := p.WriteFrame(track/2, volumetric.Quality(track%2), OutgoingFrame{Number: number, Capture: time.Now(), Data: []byte("tile")})
			if err != nil || taken != wanted {
				t.Fatalf("frame %d of track %d: taken %t, %v; want %t", number, track, taken, err, wanted)
			}
		}
		flush(m, time.Now().Add(time.Second))
	}
	write(1)
	m.session.handle(&signal.Wanted{Publications: []signal.WantedPublication{
		{Publication: "desk", Tiles: [][]volumetric.Quality{{0}}},
		{Publication: "body", Tiles: [][]volumetric.Quality{{}, {1, 7}, {0}}, Parity: 0.1},
	}})
	if e, ok := (<-m.session.events).(Wanted); !ok || e.Publication != "body" || e.Parity != 0.1 || len(m.session.events) != 0 {
		t.Errorf("got event %+v, want one of the body's with parity 0.1", e)
	}
	write(2)
	write(3)
	// The two frames of the wanted track have a packet of parity each.
	for track, want := range []int{1, 1, 1, 5} {
		sent := wires[track].sent
		if len(sent) != want || p.Wanted(track/2, volumetric.Quality(track%2)) != (track == 3) {
			t.Errorf("track %d sent %d packets, want %d", track, len(sent), want)
		}
		// Numbers go on where they were.
		for i, packet := range sent {
			if packet.SequenceNumber != sent[0].SequenceNumber+uint16(i) {
				t.Errorf("track %d has packet %d as %d, want %d", track, packet.SequenceNumber, i, sent[0].SequenceNumber+uint16(i))
			}
		}
	}
	if counts := m.session.Uplink().UplinkCounts; counts != (UplinkCounts{Paused: 6}) {
		t.Errorf("got %+v, want 6 paused frames", counts)
	}
	if p.Wanted(2, 0) || p.Wanted(0, 2) || p.GaveUp(0, -1) {
		t.Error("tracks that there are not are wanted")
	}
	// What nobody takes is not sent without a connection, either.
	m.disconnect()
	if taken, err := p.WriteFrame(0, 0, OutgoingFrame{Number: 4}); taken || !errors.Is(err, ErrNotConnected) {
		t.Errorf("got %v, want an error around %v", err, ErrNotConnected)
	}
}

func TestMeasuredRates(t *testing.T) {
	description := described("body", volumetric.MIMEVolumetric, 1, 3)
	description.Qualities[1].Bitrate = 1160e3
	p := newPublisher(newRig(t, Config{}).session, description)
	if unknown, nominal := p.rate(0), p.rate(1); unknown != 0 || nominal != (1160+64)*1e3 {
		t.Errorf("got %g and %g bit/s, want 0 and the nominal rate with what goes around it, 1.224 Mbit/s", unknown, nominal)
	}
	// 15 frames per second instead of 30, then a pause, which is no interval.
	at := epoch
	for range 100 {
		p.measure(1, at, 10_000)
		p.measure(2, at, 5000)
		at = at.Add(time.Second / 15)
	}
	p.measure(1, at.Add(time.Minute), 10_000)
	// A track that has paused meanwhile changes nothing.
	p.measure(0, at.Add(time.Minute), 10_000)
	if got := p.rate(1); got < 1.19e6 || got > 1.21e6 {
		t.Errorf("10 kB 15 times per second are %g bit/s, want about 1.2 Mbit/s", got)
	}
	// A frame of 3,000 bytes takes three packets: 32 bytes of prefix, 16 of descriptor and 64 around it for each.
	if got, want := frameSize(3000), 3000+3*(16+64); got != want {
		t.Errorf("a frame of 3000 bytes takes %d, want %d", got, want)
	}
	if got := packetsSize([][]byte{make([]byte, 100), make([]byte, 50)}); got != 150+2*64 {
		t.Errorf("two packets take %d bytes, want 278", got)
	}
}

func TestFramesOfVideoThatWereLeftOutNeedAKeyFrame(t *testing.T) {
	m := newRig(t, Config{})
	p, _ := published(t, m, described("film", volumetric.MIMEH264, 1, 1))
	begin := time.Now()
	limitTo(t, m, 100e3)
	for range 3 {
		// 40 kB take 3.2 s at the estimate, and 1.3 s at 2.5 times that.
		if _, err := p.WritePackets(0, 0, begin, [][]byte{make([]byte, 40_000)}); err != nil {
			t.Fatal(err)
		}
	}
	for ms := range 1400 {
		m.uplink.depart(begin.Add(time.Duration(ms)*time.Millisecond), nil)
		m.countDropped()
	}
	if counts := m.session.Uplink(); counts.Dropped != 2 || waits(m) {
		t.Errorf("%d frames were left out, others wait: %t; want 2 and none", counts.Dropped, waits(m))
	}
	for range 2 {
		select {
		case e := <-m.session.events:
			if e != (KeyFrameWanted{Publication: "film"}) {
				t.Errorf("got %+v, want a request for a key frame", e)
			}
		default:
			t.Error("no request for a key frame")
		}
	}
}

// nowhere is an outlet that keeps nothing.
type nowhere struct{ *wire }

func (nowhere) Queue(*rtp.Header, []byte) error { return nil }

// TestPacketsLeaveWithoutAllocations: pion/rtp makes two for each header extension, nothing else makes any.
func TestPacketsLeaveWithoutAllocations(t *testing.T) {
	const perMillisecond = 6
	for extension, most := range []float64{0, 2 * perMillisecond} {
		// Less than what packets take, so that they leave as they are spread.
		m := newRig(t, Config{StartUplink: 5e6})
		p := newPublisher(m.session, described("body", volumetric.MIMEVolumetric, 1, 1))
		m.agree(uint8(extension), false)
		m.connect()
		m.attach("0", nowhere{newOutlet(volumetric.MIMEVolumetric, 100, 101)}, p, 0, 0)
		begin := time.Now()
		payloads := make([][]byte, 10_000*perMillisecond)
		for i := range payloads {
			payloads[i] = make([]byte, 100)
		}
		if err := m.enqueue(p, 0, begin, payloads, 10*time.Second, false, nil); err != nil {
			t.Fatal(err)
		}
		s := sending{media: m}
		now := begin
		step := func() {
			now = now.Add(time.Millisecond)
			s.step(now, noFlush{})
		}
		// Rings grow until they hold a second of packets.
		for range 2000 {
			step()
		}
		kept := p.lines[0].history.Len()
		if allocations := testing.AllocsPerRun(2000, step); allocations > most || !waits(m) || kept < 900*perMillisecond {
			t.Errorf("extension %d: %g allocations for %d packets, want at most %g", extension, allocations, perMillisecond, most)
		}
	}
}

type noFlush struct{}

func (noFlush) Flush() {}
