package signalling

import (
	"reflect"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

var epoch = time.Date(2026, 11, 20, 15, 30, 0, 123_456_789, time.UTC)

func TestUpdatesAreFewAndNew(t *testing.T) {
	u := NewUpdates()
	at := func(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }
	expect := func(ms int, wait time.Duration, want ...signal.Message) {
		t.Helper()
		if run, got := u.Take(at(ms)); !reflect.DeepEqual(run, want) || (got-wait).Abs() > time.Microsecond {
			t.Errorf("at %d ms: got %v, to wait %v; want %v, %v", ms, run, got, want, wait)
		}
	}
	expect(0, 0)
	first, second := &signal.Viewpoint{At: 1}, &signal.Viewpoint{At: 2}
	u.SetViewpoint(first)
	expect(0, 0, first)
	expect(1, 0)
	u.SetViewpoint(first)
	u.SetPose(&signal.Pose{Publication: "desk"})
	expect(5, UpdateInterval-5*time.Millisecond)
	// The newest update of each kind is sent, together with the others.
	desk, body, uplink := &signal.Pose{Publication: "desk", Scale: 2}, &signal.Pose{Publication: "body"},
		&signal.Uplink{Estimate: 1}
	u.SetViewpoint(second)
	u.SetPose(desk)
	u.SetPose(body)
	u.SetUplink(uplink)
	expect(17, 0, uplink, second, body, desk)
	expect(40, 0)
	if len(u.wake) != 1 {
		t.Error("the wake channel has no value")
	}
	sent := 0
	for ms := 1000; ms < 2000; ms++ {
		u.SetViewpoint(first)
		run, _ := u.Take(at(ms))
		sent += len(run)
	}
	if sent < 55 || sent > 60 {
		t.Errorf("%d viewpoints within a second, want at most 60", sent)
	}
}
