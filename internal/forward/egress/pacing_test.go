package egress

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
)

// newPacedRig returns a rig whose receivers are paced.
func newPacedRig(t testing.TB, mode pacing.Mode, change func(*rigConfig)) *rig {
	t.Helper()
	return newRig(t, func(c *rigConfig) {
		c.Pacing = mode
		if change != nil {
			change(c)
		}
	})
}

// begin publishes two frames of one packet, with which slots begin: the first frame of a foreign track may lack its
// start.
func (r *rig) begin(p *publisher) {
	for range 2 {
		p.Next()
		p.Send(r.now, p.Packets(1000)...)
		r.ticks(frameInterval)
	}
}

// departures advances the time while packets wait, and returns how many left to the subscriber and when.
func (r *rig) departures(s *subscriber) string {
	var b strings.Builder
	begun, before := r.now, 0
	w := r.engine.writers[0]
	for {
		r.run()
		if n := len(s.outlet.sent()); n > before {
			fmt.Fprintf(&b, "%v: %d\n", r.now.Sub(begun).Round(10*time.Microsecond), n-before)
			before = n
		}
		if len(w.paced) == 0 {
			return b.String()
		}
		r.now = r.now.Add(idleOf(w))
	}
}

func TestFrameIsSpread(t *testing.T) {
	for _, test := range []struct {
		mode pacing.Mode
		want string
		mean time.Duration
	}{
		{pacing.Off, "0s: 42\n", 0},
		{pacing.Default, "0s: 7\n2.22ms: 7\n4.44ms: 7\n6.67ms: 7\n8.89ms: 7\n11.11ms: 7\n", 5556 * time.Microsecond},
		{"spread:20ms",
			"0s: 5\n2.38ms: 5\n4.76ms: 5\n7.14ms: 5\n9.52ms: 5\n11.9ms: 5\n14.29ms: 5\n16.67ms: 5\n19.05ms: 2\n",
			8844 * time.Microsecond},
		{pacing.Burst5ms, "0s: 16\n5.08ms: 16\n10.16ms: 10\n", 4354 * time.Microsecond},
	} {
		r := newPacedRig(t, test.mode, nil)
		p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
		subscribers := r.subscribeAll(3, p)
		p.Next()
		p.Send(r.now, p.Packets(42*1144)...)
		if got := r.departures(subscribers[0]); got != test.want {
			t.Errorf("%s: packets left at\n%s, expected\n%s", test.mode, got, test.want)
		}
		for _, s := range subscribers {
			checkContinuous(t, s.outlet.sent())
			if f := frames(t, s.outlet.sent()); f[1] != 42 {
				t.Errorf("%s: %d packets left, expected 42", test.mode, f[1])
			}
		}
		stats := r.engine.Stats()
		if stats.Residence.Count() != 3*42 || stats.Residence.Sum > 3*42*10 {
			t.Errorf("%s: %d packets stayed for %v, expected 126, for no longer than intended", test.mode,
				stats.Residence.Count(), stats.Residence.Sum)
		}
		if !stats.Paced {
			if stats.PacerHold.Count() != 0 || test.mode != pacing.Off {
				t.Errorf("%s: %d holds are counted", test.mode, stats.PacerHold.Count())
			}
			continue
		}
		if n := stats.PacerHold.Count(); n != 3*42 {
			t.Errorf("%s: %d holds are counted, expected 126", test.mode, n)
		} else if mean := (stats.PacerHold.Sum / 126).Round(time.Microsecond); mean < test.mean-2*time.Microsecond ||
			mean > test.mean+2*time.Microsecond {
			t.Errorf("%s: packets were held for %v on average, expected %v", test.mode, mean, test.mean)
		}
	}
}

// TestCutThrough sends a frame at its publisher's pace. The packets leave as they arrive.
func TestCutThrough(t *testing.T) {
	r := newPacedRig(t, pacing.Default, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	s := r.subscribeAll(1, p)[0]
	p.Next()
	begun := r.now
	for tick, packets := range slices.Collect(slices.Chunk(p.Packets(42*1144), 7)) {
		r.now = begun.Add(time.Duration(tick) * 2220 * time.Microsecond)
		p.Send(r.now, packets...)
		r.run()
		if n := len(s.outlet.sent()); n != 7*(tick+1) {
			t.Errorf("%d packets left with tick %d of the publisher", n, tick)
		}
	}
	r.ticks(HousekeepingInterval)
	if h := r.engine.Stats().PacerHold; h.Sum > 42*10 {
		t.Errorf("packets were held for %v in all, expected not at all", h.Sum)
	}
	if runs := s.peer.takeRuns(); !slices.Equal(runs, []int{7, 7, 7, 7, 7, 7}) {
		t.Errorf("packets left in runs of %v", runs)
	}
}

// TestNothingHoldsAudioAndRepairs uses a receiver whose queue is stuck at a low estimate.
func TestNothingHoldsAudioAndRepairs(t *testing.T) {
	r := newPacedRig(t, pacing.Default, nil)
	i := r.ingress(&fakePeer{})
	video, audio := r.publish(i, 10, volumetric.MIMEVolumetric), r.publish(i, 20, volumetric.MIMEOpus)
	s := r.subscribeAll(1, video)[0]
	sound := newFakeOutlet(s.peer, 5000)
	s.receiver.AddSlot(sound, volumetric.KindAudio).Select(audio.track, 2, r.now)
	r.run()
	video.Next()
	packets := video.Packets(42 * 1144)
	lost := packets[2]
	video.Send(r.now, slices.Concat(packets[:2], packets[3:])...)
	r.run()
	r.limit(s, 1000)
	r.ticks(5 * time.Millisecond)
	before := s.outlet.sent()
	if len(before) < 6 || len(before) > 20 {
		t.Fatalf("%d packets of video left, expected some", len(before))
	}
	audio.Send(r.now, audio.Packet([]byte("opus"), false))
	r.run()
	if n := len(sound.sent()); n != 1 {
		t.Errorf("%d packets of audio left, expected 1 at once", n)
	}
	video.Repair(r.now, lost)
	r.run()
	if n := len(s.outlet.sent()); n != len(before)+1 {
		t.Errorf("%d packets of video left, expected the repair after %d", n, len(before))
	}
	r.now = r.now.Add(20 * time.Millisecond)
	s.nack(t, r.now, before[1].SequenceNumber)
	r.run()
	if n := len(s.outlet.repaired()); n != 1 {
		t.Errorf("%d retransmissions left, expected 1 at once", n)
	}
	// A waiting packet counts as owed and is not sent twice.
	s.nack(t, r.now, before[0].SequenceNumber+41)
	r.run()
	if stats := r.engine.Stats(); stats.NACKed != (counters.NACKOutcome{Answered: 1, Owed: 1}) {
		t.Errorf("requests came to %+v, expected one answered and one owed", stats.NACKed)
	}
	// The next tick was minutes away. The next frame applies the new estimate.
	r.limit(s, 0)
	video.Next()
	video.Send(r.now, video.Packets(1000)...)
	r.ticks(20 * time.Millisecond)
	checkContinuous(t, s.outlet.sent())
	if n := len(s.outlet.sent()); n != 43 {
		t.Errorf("%d packets of video left, expected 43", n)
	}
}

// TestFramesOverBudget sends a receiver three times its estimate. Frames are dropped as a whole, are reported, and
// leave no gap.
func TestFramesOverBudget(t *testing.T) {
	for _, mime := range []string{volumetric.MIMEVolumetric, volumetric.MIMEOpaque} {
		r := newPacedRig(t, pacing.Default, nil)
		p := r.publish(r.ingress(&fakePeer{}), 10, mime)
		s := r.subscribeAll(1, p)[0]
		r.begin(p)
		// 40 packets of 1,224 bytes, 30 times a second, are 11.75 Mbit/s.
		r.limit(s, 3_900_000)
		const total = 90
		for range total {
			p.Next()
			packets := p.Packets(40 * 1144)
			for _, some := range [][][]byte{packets[:10], packets[10:30], packets[30:]} {
				p.Send(r.now, some...)
				r.ticks(time.Second / 90)
			}
		}
		r.ticks(time.Second)
		sent := s.outlet.sent()
		checkContinuous(t, sent)
		whole := 0
		for frame, n := range frames(t, sent) {
			if frame == 1 || frame == 2 {
				continue
			}
			if n != 40 {
				t.Errorf("%s: frame %d left in %d packets, expected 40", mime, frame, n)
			}
			whole++
		}
		dropped := s.dropped()[DroppedBudget]
		if stats := r.engine.Stats(); whole < total/3-2 || whole > total/3+3 || dropped != total-whole ||
			int(stats.DroppedBudget) != dropped {
			t.Errorf("%s: %d of %d frames left, %d told as dropped, %d counted", mime, whole, total, dropped,
				stats.DroppedBudget)
		}
		// A frame begins at most one interval after its arrival, and takes 0.1 s to leave.
		if h := r.engine.Stats().PacerHold; h.Sum/time.Duration(h.Count()) > 140*time.Millisecond {
			t.Errorf("%s: packets were held for %v on average", mime, h.Sum/time.Duration(h.Count()))
		}
	}
}

// TestFramesOverBudgetOfAPendingTrack sends a receiver more than its estimate, on two tracks in turns. The frames of
// the selected track arrive 5 ms earlier. All frames that do not leave are reported, regardless of the track that was
// to begin them, except frames lost on the publisher's link.
func TestFramesOverBudgetOfAPendingTrack(t *testing.T) {
	race.SkipSequential(t)
	const total, lostEvery = 200, 20
	lost := 0
	for estimate := int64(2_000_000); estimate <= 8_000_000; estimate += 250_000 {
		r := newPacedRig(t, pacing.Default, nil)
		i := r.ingress(&fakePeer{})
		tracks := [2]*publisher{r.publish(i, 10, volumetric.MIMEVolumetric),
			r.publish(i, 12, volumetric.MIMEVolumetric)}
		s := r.subscribe(1000, volumetric.KindVideo)
		s.slot.Select(tracks[0].track, 1, r.now)
		r.run()
		r.limit(s, estimate)
		for frame := range total {
			selected := frame / 4 % 2
			s.slot.Select(tracks[selected].track, 1, r.now)
			for _, p := range []*publisher{tracks[selected], tracks[1-selected]} {
				p.Next()
				if frame%lostEvery != lostEvery-1 {
					p.Send(r.now, p.Packets(30*1144)...)
				}
				r.ticks(frameInterval / 6)
			}
			r.ticks(frameInterval - 2*(frameInterval/6))
		}
		r.ticks(time.Second)
		sent := s.outlet.sent()
		checkContinuous(t, sent)
		whole, dropped := len(frames(t, sent)), s.dropped()[DroppedBudget]
		lost += dropped
		if came := total - total/lostEvery; whole+dropped != came {
			t.Errorf("%d bit/s: %d of %d frames left, %d told as dropped", estimate, whole, came, dropped)
		}
	}
	if lost == 0 {
		t.Error("no frame was dropped")
	}
}

func TestPacingDoesNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("a sync.Pool drops packets at random under the race detector")
	}
	r := newPacedRig(t, pacing.Default, nil)
	i := r.ingress(&fakePeer{})
	p := r.publish(i, 10, volumetric.MIMEOpaque)
	flushes := 0
	receiver := r.engine.NewReceiver(&nullPeer{flushes: &flushes}, 0)
	for n := range 10 {
		receiver.AddSlot(nullOutlet{uint32(1000 + 10*n)}, volumetric.KindVideo).Select(p.track, 1, r.now)
	}
	r.run()
	template := p.Packet(make([]byte, 1000), false)
	number, timestamp := p.Sequence, p.Timestamp
	frame := func() {
		timestamp += 3000
		for k := range 50 {
			number++
			template[2], template[3] = byte(number>>8), byte(number)
			template[4], template[5], template[6], template[7] = byte(timestamp>>24), byte(timestamp>>16),
				byte(timestamp>>8), byte(timestamp)
			template[1] = 96
			if k == 49 {
				template[1] |= 0x80
			}
			i.RTP(p.SSRC, template, forwardtest.InfoAt(r.now))
		}
		i.Flush()
		r.ticks(time.Second / 30)
	}
	for range 60 {
		frame()
	}
	if h := r.engine.Stats().PacerHold; h.Sum < time.Second {
		t.Fatalf("packets were held for %v in all, expected that they wait", h.Sum)
	}
	// The pool now and then loses packets to the garbage collector, and housekeeping allocates a list of slots every
	// third frame.
	if n := testing.AllocsPerRun(100, frame); n > 1 {
		t.Errorf("%v allocations per frame of 50 packets to 10 slots, expected none", n)
	}
}
