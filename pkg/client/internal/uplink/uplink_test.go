package uplink

import (
	"reflect"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestTheServerIsToldOfTheUplink: tracks given up are reported at once, the rate after a change of a tenth, and
// everything again after a reset.
func TestTheServerIsToldOfTheUplink(t *testing.T) {
	u := newRig(t)
	p, _ := published(t, u, described("body", volumetric.MIMEVolumetric, 1, 2))
	p.tracks[0].size, p.tracks[1].size = 2000, 4000
	u.Number(1, false, limits(1e6, 0), time.Now())
	now := time.Now()
	told := func(after time.Duration) *signal.Uplink {
		t.Helper()
		now = now.Add(after)
		_, message := u.Weigh(now)
		return message
	}
	// 0.48 and 0.96 Mbit/s into 1 Mbit/s.
	want := []signal.OwnTrack{{Publication: "body", Tile: 0, Quality: 1}}
	if got := told(0); got == nil || !reflect.DeepEqual(got.GaveUp, want) || got.Estimate != 0 {
		t.Errorf("got %+v, want %+v of an unknown rate", got, want)
	}
	if got := u.GaveUp(); !reflect.DeepEqual(got, want) || !p.GaveUp(1) || u.Wanted(p, 1, now) {
		t.Errorf("gave up %+v, want %+v", got, want)
	}
	if got := told(10 * time.Second); got != nil {
		t.Errorf("got %+v, want nothing new", got)
	}
	recorder := feedback.NewTransportRecorder(feedback.DefaultConfig().Transport)
	recorder.Received(uint16(u.queue.sender.Sent(100, 1, 1200, feedback.Media, now)), 1200, now)
	if now = now.Add(time.Second); !u.Report(recorder.AppendReports(nil, 1, 0, now), now) {
		t.Fatal("a report on a packet has no result")
	}
	if got := told(time.Second); got == nil || got.Estimate != 1e6 || !reflect.DeepEqual(got.GaveUp, want) {
		t.Errorf("got %+v, want 1 Mbit/s", got)
	}
	u.Resend()
	if got := told(100 * time.Millisecond); got == nil || got.Estimate != 1e6 || !reflect.DeepEqual(got.GaveUp, want) {
		t.Errorf("got %+v, want the same again", got)
	}
	// The estimate's limits rise: the track returns, and the server is informed.
	higher := limits(1e6, 0).Limits()
	higher.Min, higher.Start = 3e6, 3e6
	u.queue.sender.SetLimits(higher, now)
	if got := told(200 * time.Millisecond); got == nil || got.Estimate != 3e6 || len(got.GaveUp) != 0 {
		t.Errorf("got %+v, want 3 Mbit/s and nothing given up", got)
	}
	u.Detach(p)
	if got := told(time.Minute); got != nil {
		t.Errorf("got %+v of a client that publishes nothing", got)
	}
}

// TestOnlyReportsInTheAgreedFormAreRead: reports in another form have no effect, and of a flood 1,000 are read in a
// second.
func TestOnlyReportsInTheAgreedFormAreRead(t *testing.T) {
	for _, byStream := range []bool{false, true} {
		u := newRig(t)
		published(t, u, described("body", volumetric.MIMEVolumetric, 1, 1))
		u.Number(1, byStream, limits(0, 0), time.Now())
		now := time.Now()
		cfg := feedback.DefaultConfig().Transport
		numbers, streams := feedback.NewTransportRecorder(cfg), feedback.NewCongestionRecorder(cfg, 1)
		number := u.queue.sender.Sent(100, 1, 1200, feedback.Media, now)
		numbers.Received(uint16(number), 1200, now)
		streams.Received(100, 1, 1200, ecn.NotECT, now)
		now = now.Add(time.Second)
		agreed, other := numbers.AppendReports(nil, 1, 0, now), streams.AppendReports(nil, now)
		if byStream {
			agreed, other = other, agreed
		}
		if u.Report(other, now) || u.Estimate() != 0 {
			t.Errorf("by stream %t: a report in the other form has results", byStream)
		}
		if !u.Report(agreed, now) || u.Estimate() == 0 {
			t.Errorf("by stream %t: a report has no result", byStream)
		}
		for range 1500 {
			u.Report(agreed, now)
		}
		if dropped := u.Counts().ReportsDropped; dropped != 502 {
			t.Errorf("by stream %t: %d reports are dropped of 1502 in a second, expected 502", byStream, dropped)
		}
		u.Reset(now)
		if dropped := u.Counts().ReportsDropped; dropped != 502 {
			t.Errorf("by stream %t: after a reset %d reports are dropped, expected 502", byStream, dropped)
		}
	}
}
