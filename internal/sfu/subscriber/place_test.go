package subscriber

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

func TestViewpointStamps(t *testing.T) {
	for name, test := range map[string]struct {
		stamp, want time.Duration
		absent      bool
	}{
		"recent":      {stamp: -30 * time.Millisecond, want: -30 * time.Millisecond},
		"absent":      {absent: true},
		"of old":      {stamp: -time.Hour},
		"from beyond": {stamp: time.Second},
	} {
		m := &signal.Viewpoint{Orientation: signal.Rotation{0, 0, 0, 0.995}, FOV: 90}
		if !test.absent {
			m.At = start.Add(test.stamp).UnixMicro()
		}
		v := ViewpointOf(m, start)
		if got := v.At.Sub(start); got != test.want {
			t.Errorf("%s: counts as %v from reading, expected %v", name, got, test.want)
		}
		if v.Orientation[3] != 1 || v.FOV < 1.57 || v.FOV > 1.58 {
			t.Errorf("%s: got %+v, expected a unit quaternion and radians", name, v)
		}
	}
}
