package control

import (
	"errors"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

// TestEvaluation runs the cases of RFC 8867 in part. Receivers use the link, and the case of the short transfers has
// several of them.
func TestEvaluation(t *testing.T) {
	t.Parallel()
	for _, section := range []string{"5.1", "5.2", "5.3", "5.4", "5.5", "5.6", "5.7", "5.8"} {
		t.Run(section, func(t *testing.T) {
			t.Parallel()
			o := DefaultOptions()
			o.Duration = 65 * time.Second
			var flows [18]int // the last has reports
			o.Packets = func(p PacketFate) { flows[min(p.Flow, uint64(len(flows)-1))]++ }
			record, err := RunVirtual(t.Context(), "rfc8867:"+section, o)
			if err != nil {
				t.Fatal(err)
			}
			r := record.Result()
			t.Logf("%.3f of the link, p95 %.0f ms, %d of %d undecodable", r.ShareWithHeaders(), r.Latency.P95,
				r.FramesUndecodable, r.FramesSent)
			least := 0.6
			if section == "5.6" || section == "5.7" {
				least = 0.02
			}
			if share := r.ShareWithHeaders(); share < least || share > 1.02 {
				t.Errorf("expected %g of the link or more, got %g", least, share)
			}
			if reports := flows[len(flows)-1] > 0; reports != (section == "5.3") {
				t.Errorf("reports pass a bottleneck: %v", reports)
			}
			if section == "5.7" && (flows[3] == 0 || flows[12] == 0) {
				t.Errorf("expected packets of ten transfers, got %v", flows)
			}
			if (r.JainIndex != nil) != (record.scenario.receivers > 1 && section != "5.3" && section != "5.8") {
				t.Errorf("Jain's index is %v", r.JainIndex)
			}
		})
	}
	for _, text := range []string{"rfc8867:5.9", "rfc8867:", "rfc8867"} {
		if _, err := RunVirtual(t.Context(), text, DefaultOptions()); !errors.Is(err, ErrCase) {
			t.Errorf("%s: got %v", text, err)
		}
	}
	if _, err := RunLive(t.Context(), "rfc8867:5.1", DefaultOptions()); !errors.Is(err, ErrCase) {
		t.Errorf("expected an error, got %v", err)
	}
}

// TestPause checks that the first receiver of case 5.8 has no frames during its pause.
func TestPause(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	o.Duration = 61 * time.Second
	record, err := RunVirtual(t.Context(), "rfc8867:5.8", o)
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range record.receivers {
		during := 0
		for _, f := range l.frames {
			if f.captured >= 41*time.Second && f.captured < 59*time.Second {
				during++
			}
		}
		if (during == 0) != (i == 0) {
			t.Errorf("receiver %d has %d frames during the pause of the first", i+1, during)
		}
	}
}

// TestShortTransfers checks that short transfers end and begin again.
func TestShortTransfers(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	o.Duration = 40 * time.Second
	s, err := NewSimulation("rfc8867:5.7", o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	packets := uint64(0)
	for _, c := range s.competitors {
		packets += c.watched.transmitted
	}
	// Without ends ten transfers would fill the link: 2 Mbit/s are 6,666 segments in 40 s.
	if bytes := packets * netem.SegmentBytes; bytes < 5*shortLeast || packets > 6600 {
		t.Errorf("got %d bytes", bytes)
	}
}
