package ingress

import (
	"strings"
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

// TestAPanicEndsOnePublisher lets a publisher's goroutine panic: outside of its state, and during a change of its
// state, with the mutex held. The publisher's peer fails and its packets are ignored; packets of another publisher are
// not.
func TestAPanicEndsOnePublisher(t *testing.T) {
	for _, test := range []struct {
		name    string
		corrupt func(*fakePeer, *Ingress)
	}{
		{"RTCP", func(p *fakePeer, _ *Ingress) { p.breaks() }},
		{"state", func(_ *fakePeer, i *Ingress) {
			i.mu.Lock()
			defer i.mu.Unlock()
			for _, s := range i.bindings.streams {
				s.reception = nil
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			reported := make(chan panics.Report, 1)
			guard := panics.NewGuard(func(r panics.Report) { reported <- r }, Place)
			r := live(t, func(c *rigConfig) {
				c.Guard, c.ReportInterval = guard, 100*time.Millisecond
			})
			peer := &fakePeer{}
			broken := r.publish(r.set.New(peer), 10, volumetric.MIMEVolumetric)
			kept := r.publish(r.set.New(&fakePeer{}), 20, volumetric.MIMEVolumetric)
			other := follow(kept.track)
			broken.Next()
			broken.Send(time.Now(), broken.Packets(4000)...)
			test.corrupt(peer, broken.ingress)
			if report := <-reported; report.Where != Place {
				t.Errorf("the panic is one of %q, expected %q", report.Where, Place)
			}
			wait.Until(t, "the peer fails", peer.hasFailed)
			wait.Until(t, "the track is unbound", func() bool { return streamOf(broken.track).ingress.Load() == nil })
			// Its reader continues until the peer is closed.
			before := broken.track.Stats().Packets
			broken.Next()
			broken.Send(time.Now(), broken.Packets(4000)...)
			broken.ingress.RTCP(nil, time.Now())
			if n := broken.track.Stats().Packets; n != before {
				t.Errorf("%d packets were taken of a publisher that has ended", n-before)
			}
			kept.Next()
			kept.Send(time.Now(), kept.Packets(4000)...)
			if n := len(other.read(t)); n != 4 {
				t.Errorf("%d packets of the other publisher came, expected 4", n)
			}
		})
	}
}

// TestNothingIsTakenAfterAPanic panics in each guarded goroutine that changes the state of a publisher's ingress. No
// goroutine uses the incomplete change, and the mutex is free.
func TestNothingIsTakenAfterAPanic(t *testing.T) {
	for _, test := range []struct {
		name  string
		panic func(*rig, *publisher)
	}{
		{"RTP", func(r *rig, p *publisher) {
			streamOf(p.track).reception = nil
			p.ingress.RTP(p.SSRC, p.Packets(100)[0], forwardtest.InfoAt(r.now))
		}},
		{"RTCP", func(r *rig, p *publisher) {
			streamOf(p.track).reception = nil
			report, err := (&rtcp.SenderReport{SSRC: p.SSRC, NTPTime: 1 << 60}).Marshal()
			if err != nil {
				r.t.Fatal(err)
			}
			p.ingress.RTCP(report, r.now)
		}},
		{"step", func(r *rig, p *publisher) {
			streamOf(p.track).reception = nil
			p.ingress.step(r.now)
		}},
		{"arrivals", func(r *rig, p *publisher) {
			p.ingress.arrivals.recorder, p.ingress.arrivals.due = nil, r.now
			p.ingress.arrivalReports(r.now)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, nil)
			p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
			p.Next()
			r.now = r.now.Add(time.Second)
			guard := panics.NewGuard(func(panics.Report) {}, "publisher")
			if guard.Try("publisher", func() { test.panic(r, p) }) {
				t.Fatal("nothing panicked")
			}
			p.Send(r.now, p.Packets(4000)...)
			p.ingress.RTCP(nil, r.now)
			if packets, next := p.ingress.step(r.now); len(packets) != 0 || !next.IsZero() {
				t.Errorf("after the panic the step gives %v, and another at %v", packets, next)
			}
			if reports, _ := p.ingress.arrivalReports(r.now); len(reports) != 0 {
				t.Errorf("after the panic there are reports of arrivals: %v", reports)
			}
			if n := p.track.Stats().Packets; n != 0 {
				t.Errorf("%d packets were taken after the panic", n)
			}
			p.ingress.Close()
			if streamOf(p.track).ingress.Load() != nil {
				t.Error("the track is bound to an ingress that is closed")
			}
		})
	}
}

// TestWorkOnALogIsNotGuarded panics in work of a publisher's goroutine on which the writers of all clients depend.
func TestWorkOnALogIsNotGuarded(t *testing.T) {
	for _, test := range []struct {
		name string
		work func(*rig, *publisher)
	}{
		{"publish", func(r *rig, p *publisher) {
			(&track.Track{}).Publish(r.set.packets.Get(nil))
		}},
		{"trim", func(r *rig, p *publisher) {
			(&packetlog.Log{}).Trim(r.clock.Since(r.now))
		}},
		{"signal", func(_ *rig, p *publisher) {
			p.ingress.signals.tracks = []*track.Track{{}}
			p.ingress.signals.send()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, nil)
			p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
			defer func() {
				if err, is := recover().(error); !is || !strings.Contains(err.Error(), "many clients share") {
					t.Errorf("the panic is %v, expected it to end the process", err)
				}
			}()
			panics.NewGuard(func(panics.Report) {}, "publisher").Try("publisher", func() { test.work(r, p) })
			t.Error("the panic was recovered from")
		})
	}
}
