package egress

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
)

// shared is a publication of two qualities and sound, with two receivers.
type shared struct {
	*rig
	qualities [2]*publisher
	sound     *publisher
	receivers [2]*subscriber
	voices    [2]*fakeOutlet
	links     [2]*downlink
	// chosen are the qualities that the receivers take, estimates those of the second receiver after each frame.
	chosen    [2]int
	estimates []volumetric.Bitrate
}

// The sizes of a frame of each quality, in packets: 8 and 16 Mbit/s.
var sharedSizes = [2]int{27, 54}

// newShared makes two links of 100 Mbit/s. If marks is set, the first is a DualPI2 queue of 10 Mbit/s.
func newShared(t *testing.T, marks bool) *shared {
	s := &shared{rig: newPacedRig(t, pacing.Default, func(c *rigConfig) {
		c.Congestion.Controller = congestion.ControllerAuto
	})}
	in := s.ingress(&fakePeer{})
	for q := range s.qualities {
		s.qualities[q] = s.publish(in, uint32(10+10*q), volumetric.MIMEVolumetric)
	}
	s.sound = s.publish(in, 40, volumetric.MIMEOpus)
	for n := range s.receivers {
		r := s.subscribe(uint32(1000+100*n), volumetric.KindVideo)
		s.receivers[n], s.voices[n] = r, newFakeOutlet(r.peer, uint32(1050+100*n))
		r.receiver.AddSlot(s.voices[n], volumetric.KindAudio).Select(s.sound.track, 1, s.now)
		s.links[n] = s.connect(r, 100e6)
		s.links[n].byStream()
		r.receiver.Want(25e6)
		r.slot.Select(s.qualities[0].track, 1, s.now)
	}
	if marks {
		cfg := netem.DefaultConfig()
		cfg.RateBPS, cfg.Delay, cfg.Queue = 10e6, s.links[0].delay, netem.QueueDualPI2
		var err error
		if s.links[0].marking, err = netem.NewLink(cfg, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.run()
	return s
}

// frames publishes frames of both qualities and sound, whose packets arrive with a codepoint. Each receiver takes the
// higher quality if the estimate is 20 Mbit/s or more.
func (s *shared) frames(d time.Duration, arrive ecn.Codepoint) {
	for end := s.now.Add(d); s.now.Before(end); {
		info := &transport.PacketInfo{At: s.now, ECN: arrive}
		for q, p := range s.qualities {
			p.Next()
			p.SendInfo(info, p.Packets(sharedSizes[q]*1144)...)
		}
		s.sound.Next()
		s.sound.SendInfo(info, s.sound.Packet([]byte("opus"), false))
		passAll(frameInterval, s.links[:]...)
		for n, r := range s.receivers {
			path, quality := r.receiver.Path(), 0
			if path.Known && path.Estimate >= 20e6 {
				quality = 1
			}
			if quality != s.chosen[n] {
				s.chosen[n] = quality
				r.slot.Select(s.qualities[quality].track, 1, s.now)
			}
		}
		s.estimates = append(s.estimates, s.receivers[1].receiver.Path().Estimate)
	}
}

// estimateShare bounds the difference of the second receiver's estimates: the receivers share a writer, which wakes at
// the ticks of both, so that packets of a probe may leave in other ticks.
const estimateShare = 0.1

// TestMarksConcernOneHop has two receivers of a publication in two qualities. Marks on the first receiver's hop lower
// only its quality: the second receiver is sent the same packets. Marks on the publisher's hop change nothing for
// receivers. All frames leave whole.
func TestMarksConcernOneHop(t *testing.T) {
	race.SkipSequential(t)
	const length = 6 * time.Second
	plain, marked, published := newShared(t, false), newShared(t, true), newShared(t, false)
	plain.frames(length, ecn.ECT1)
	marked.frames(length, ecn.ECT1)
	published.frames(length, ecn.CE)
	first := marked.receivers[0].receiver
	l4s, _, _ := marked.links[0].marking.ClassStats()
	queued := slices.Sorted(slices.Values(marked.links[0].queued))
	p99 := queued[len(queued)*99/100]
	t.Logf("the first receiver: %v, %d marks, queue p99 %v", first.Path().Estimate, l4s.Marked, p99)
	if first.Path().Estimate > 12e6 || l4s.Marked == 0 || p99 > 6*time.Millisecond || marked.chosen != [2]int{0, 1} {
		t.Errorf("the first receiver's estimate is %v after %d marks, queue p99 %v, qualities %v; expected 12 Mbit/s "+
			"at most, marks, 6 ms at most, and 0 and 1", first.Path().Estimate, l4s.Marked, p99, marked.chosen)
	}
	// The last packets are not reported yet.
	if reported := marked.engine.Stats().TransportMarked; reported == 0 || reported > l4s.Marked ||
		reported+20 < l4s.Marked {
		t.Errorf("%d marks are reported, expected about %d", reported, l4s.Marked)
	}
	if plain.chosen != [2]int{1, 1} || published.chosen != [2]int{1, 1} {
		t.Errorf("qualities %v without marks, %v with marks of the publisher, expected 1 and 1", plain.chosen,
			published.chosen)
	}
	for name, s := range map[string]*shared{"the first receiver": marked, "the publisher": published} {
		if !slices.EqualFunc(s.estimates, plain.estimates, func(a, b volumetric.Bitrate) bool {
			return math.Abs(float64(a-b)) <= estimateShare*float64(b)
		}) {
			t.Errorf("marks on the hop of %s changed the estimates of the second receiver", name)
		}
		if got, want := len(s.receivers[1].outlet.sent()), len(plain.receivers[1].outlet.sent()); got != want {
			t.Errorf("with marks on the hop of %s the second receiver was sent %d packets, expected %d", name, got,
				want)
		}
	}
	for _, s := range []*shared{plain, marked, published} {
		for n, r := range s.receivers {
			checkWhole(t, r)
			checkContinuous(t, r.outlet.sent())
			// Sound is forwarded in full.
			if sent := len(s.voices[n].sent()); sent != len(s.estimates) {
				t.Errorf("receiver %d: %d packets of sound of %d left", n, sent, len(s.estimates))
			}
			if r.peer.codepoint != ecn.ECT1 {
				t.Errorf("receiver %d: packets leave as %v", n, r.peer.codepoint)
			}
		}
	}
}
