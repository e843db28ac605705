package sfu

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// crowd returns a room with publishers of 15 tiles and 3 qualities in a circle, and a receiver in the middle whose link
// has a quarter of the needed capacity.
func crowd(t testing.TB, publishers int) (*stage, *player) {
	s := newStage(t, nil)
	for i := range publishers {
		p := s.enter(fmt.Sprint("publisher", i), false, true, ladder(15, 3))
		angle := 2 * math.Pi * float64(i) / float64(publishers)
		p.say(&signal.Pose{
			Publication: "body", Position: signal.Vector{4 * math.Sin(angle), 0, 4 * math.Cos(angle)},
			Orientation: signal.Rotation{0, 0, 0, 1}, Scale: 0.1,
		})
	}
	bob := s.enter("bob", true, false)
	bob.way.path = known(volumetric.Bitrate(publishers) * 15 * 1e6)
	bob.attach()
	return s, bob
}

// BenchmarkAllocation measures one allocation for one receiver on the room's goroutine, from the state of the link to
// the slots.
func BenchmarkAllocation(b *testing.B) {
	for _, publishers := range []int{1, 5, 20} {
		b.Run(fmt.Sprintf("%dx15x3", publishers), func(b *testing.B) {
			s, bob := crowd(b, publishers)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				turn := float64(i%100) / 100
				bob.subscriber.Look(s.now, subscriber.ViewpointOf(&signal.Viewpoint{
					Orientation: signal.Rotation{0, math.Sin(turn), 0, math.Cos(turn)}, FOV: 60, Aspect: 1,
				}, s.now), time.Second)
				s.now = s.now.Add(50 * time.Millisecond)
				bob.subscriber.SetLimits(signal.BitrateLimits{}, 0, 0)
				s.ask(func(*Room) { bob.decide() })
			}
		})
	}
}

// BenchmarkTick measures one tick of a room without changes.
func BenchmarkTick(b *testing.B) {
	s, bob := crowd(b, 20)
	bob.way.path = known(2e9)
	s.pass(20 * time.Second)
	b.ReportAllocs()
	for b.Loop() {
		s.now = s.now.Add(50 * time.Millisecond)
		s.ask(func(r *Room) { r.tick() })
	}
}

// BenchmarkConference measures one second of a room with 20 publishers and 20 receivers that look around at 60 Hz over
// links with a quarter of the needed capacity. One operation is the time of the room's goroutine for that second.
func BenchmarkConference(b *testing.B) {
	s, first := crowd(b, 20)
	watchers := []*player{first}
	for i := range 19 {
		p := s.enter(fmt.Sprint("watcher", i), true, false)
		p.way.path = first.way.path
		p.attach()
		watchers = append(watchers, p)
	}
	s.room.scheduler.Clock = time.Now
	for b.Loop() {
		for range 60 {
			for i, p := range watchers {
				turn := math.Sin(float64(s.now.UnixMilli())/1000 + float64(i))
				s.room.do(s.now, messageRequest{participant: p.participant, outbox: p.shelf, at: s.now,
					message: &signal.Viewpoint{
						Orientation: signal.Rotation{0, math.Sin(turn), 0, math.Cos(turn)}, FOV: 60, Aspect: 1,
					}})
			}
			s.pass(time.Second / 60)
		}
		for _, p := range watchers {
			p.shelf.all = nil
		}
	}
	b.ReportMetric(float64(s.counts.allocations)/float64(b.N), "decisions/op")
}
