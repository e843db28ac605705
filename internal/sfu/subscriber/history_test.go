package subscriber

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestHistory(t *testing.T) {
	var h history
	now := time.Unix(1000, 0)
	h.note(now, egress.Path{}, 5)
	if n := len(h.all()); n != 0 {
		t.Errorf("%d samples of a way that nothing is known of", n)
	}
	for i := range 3*keptSamples + 7 {
		h.note(now, egress.Path{Known: true, Estimate: volumetric.Bitrate(i), Sent: 3,
			QueueDelay: 1500 * time.Microsecond}, 7)
		// Too soon for another sample.
		h.note(now.Add(sampleInterval/2), egress.Path{Known: true, Estimate: 1e9}, 7)
		now = now.Add(sampleInterval)
	}
	got := h.all()
	if len(got) != keptSamples {
		t.Fatalf("%d samples, expected %d", len(got), keptSamples)
	}
	first := 2*keptSamples + 7
	for i, s := range got {
		want := Sample{At: 1000 + int64(first+i), Estimate: volumetric.Bitrate(first + i), Target: 7, Sent: 3,
			QueueDelay: 1.5}
		if s != want {
			t.Fatalf("sample %d is %+v, expected %+v", i, s, want)
		}
	}
}
