package client

import (
	"errors"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/pkg/client/internal/uplink"
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
			taken, err := p.WriteFrame(track/2, volumetric.Quality(track%2),
				OutgoingFrame{Number: number, Capture: time.Now(), Data: []byte("tile")})
			if err != nil || taken != wanted {
				t.Fatalf("frame %d of track %d: taken %t, %v; want %t", number, track, taken, err, wanted)
			}
		}
		flush(m, time.Now().Add(time.Second))
	}
	write(1)
	newControl(m.session.parts).handle(&signal.Wanted{Publications: []signal.WantedPublication{
		{Publication: "desk", Tiles: [][]volumetric.Quality{{0}}},
		{Publication: "body", Tiles: [][]volumetric.Quality{{}, {1, 7}, {0}}, Parity: 0.1},
	}})
	if e, ok := (<-m.session.events).(Wanted); !ok || e.Publication != "body" || e.Parity != 0.1 ||
		len(m.session.events) != 0 {
		t.Errorf("got event %+v, want one of the body's with parity 0.1", e)
	}
	write(2)
	write(3)
	// Each of the two frames of the wanted track has one parity packet.
	for track, want := range []int{1, 1, 1, 5} {
		sent := wires[track].sent
		if len(sent) != want || p.Wanted(track/2, volumetric.Quality(track%2)) != (track == 3) {
			t.Errorf("track %d sent %d packets, want %d", track, len(sent), want)
		}
		// Sequence numbers continue.
		for i, packet := range sent {
			if packet.SequenceNumber != sent[0].SequenceNumber+uint16(i) {
				t.Errorf("track %d has packet %d as %d, want %d", track, packet.SequenceNumber, i,
					sent[0].SequenceNumber+uint16(i))
			}
		}
	}
	if counts := m.session.Uplink().UplinkCounts; counts != (UplinkCounts{Paused: 6}) {
		t.Errorf("got %+v, want 6 paused frames", counts)
	}
	if p.Wanted(2, 0) || p.Wanted(0, 2) || p.GaveUp(0, -1) {
		t.Error("tracks that there are not are wanted")
	}
	// Without a connection unwanted frames are not sent, either.
	m.disconnect()
	if taken, err := p.WriteFrame(0, 0, OutgoingFrame{Number: 4}); taken || !errors.Is(err, ErrNotConnected) {
		t.Errorf("got %v, want an error around %v", err, ErrNotConnected)
	}
}

func TestFramesOfVideoThatWereLeftOutNeedAKeyFrame(t *testing.T) {
	m := newRig(t, Config{})
	p, _ := published(t, m, described("film", volumetric.MIMEH264, 1, 1))
	begin := time.Now()
	m.config.StartUplink = 100e3
	m.agree(agreement{extension: 1})
	for range 3 {
		// 40 kB take 3.2 s at the estimate, and 1.3 s at 2.5 times that.
		if _, err := p.WritePackets(0, 0, begin, [][]byte{make([]byte, 40_000)}); err != nil {
			t.Fatal(err)
		}
	}
	s := sending{media: m.media}
	for ms := range 1400 {
		m.uplink.Depart(begin.Add(time.Duration(ms)*time.Millisecond), nil)
		s.reportDropped()
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

// waits reports whether packets are queued.
func waits(m *rig) bool {
	_, waits := m.uplink.Due()
	return waits
}

// nowhere is an outlet that counts packets and keeps none.
type nowhere struct {
	*wire
	packets int
}

func (n *nowhere) Queue(*rtp.Header, []byte) error {
	n.packets++
	return nil
}

// TestPacketsLeaveWithoutAllocations: pion/rtp allocates twice for each header extension. There are no other
// allocations.
func TestPacketsLeaveWithoutAllocations(t *testing.T) {
	const perMillisecond = 6
	for extension, most := range []float64{0, 2 * perMillisecond} {
		// Less than the rate of the packets, so that they leave over their spread.
		m := newRig(t, Config{StartUplink: 5e6})
		p := newPublisher(m.session.publishers, described("body", volumetric.MIMEVolumetric, 1, 1))
		m.agree(agreement{extension: uint8(extension)})
		m.connect()
		outlet := &nowhere{wire: newOutlet(volumetric.MIMEVolumetric, 100, 101)}
		p.attach(m.media, "0", outlet, 0, 0)
		payloads := make([][]byte, 10_000*perMillisecond)
		for i := range payloads {
			payloads[i] = make([]byte, 100)
		}
		frame := uplink.Frame{
			Publication: p.present.sent, Capture: time.Now(), Payloads: payloads, Spread: 10 * time.Second,
		}
		if err := m.enqueue(frame); err != nil {
			t.Fatal(err)
		}
		s := sending{media: m.media}
		// The frame begins when enqueue reads the clock, before this.
		now := time.Now()
		step := func() {
			now = now.Add(time.Millisecond)
			s.step(now, noFlush{})
		}
		// Rings grow until they hold a second of packets.
		for range 2000 {
			step()
		}
		left := outlet.packets
		if allocations := testing.AllocsPerRun(2000, step); allocations > most || !waits(m) ||
			left < 1900*perMillisecond {
			t.Errorf("extension %d: %g allocations for %d packets, want at most %g", extension, allocations,
				perMillisecond, most)
		}
	}
}

type noFlush struct{}

func (noFlush) SetECN(ecn.Codepoint) {}
func (noFlush) Flush()               {}
