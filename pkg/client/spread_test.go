package client

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestSpreadOfFrames(t *testing.T) {
	tests := []struct {
		name    string
		rate    float64
		packets int
		want    time.Duration
	}{
		{"one packet leaves at once", 30, 1, 0},
		{"two stay together", 30, 2, packetGap},
		{"a usual frame takes 0.4 of its interval", 25, 130, 16 * time.Millisecond},
		{"one of a slow publication no longer than others", 1, 130, maxSpread},
		{"3.5 MB", 2, 3060, 3060 * packetTime},
		{"8 MB", 1, 6994, 6994 * packetTime},
		{"8 MB more often than they can leave", 10, 6994, 40 * time.Millisecond},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			description := described("body", volumetric.MIMEVolumetric, 1, 1)
			description.FrameRate = test.rate
			p := newPublisher(newRig(t, Config{}).session, description)
			if got := p.spreadOf(test.packets); (got - test.want).Abs() > time.Microsecond {
				t.Errorf("%d packets at %g frames per second take %v, want %v", test.packets, test.rate, got, test.want)
			}
		})
	}
	if wait := feedback.DefaultConfig().NACK.TailWait; 2*packetGap > wait {
		t.Errorf("packets are %v apart, which leaves less than half of the %v after which receivers ask for them", packetGap, wait)
	}
}
