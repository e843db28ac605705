package downlink

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/pkg/client/internal/hostclock"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// TestPaths counts the packets of each path and reports them, once there is a second path.
func TestPaths(t *testing.T) {
	clock := hostclock.New(frametimes.SourceSystem, 0)
	r := New(Config{}, 1, &clock)
	now := time.Unix(1000, 0)
	packet := []byte{0x80, 96, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9}
	r.Arrived(9, packet, 0, ecn.NotECT, now)
	if _, used := r.Paths(); used || len(r.AppendPathReport(nil, now.Add(time.Second))) > 0 {
		t.Error("one path counts as two")
	}
	packet[3]++
	r.Arrived(9, packet, 1, ecn.NotECT, now)
	r.Repeated(0, 9, 8, now.Add(3*time.Millisecond))
	r.Arrived(9, packet, redundancy.Paths, ecn.NotECT, now)
	r.Repeated(redundancy.Paths, 9, 8, now)
	r.Arrived(9, packet[:3], 1, ecn.NotECT, now)
	report, err := redundancy.ParseReport(r.AppendPathReport(nil, now.Add(time.Second)))
	if err != nil {
		t.Fatal(err)
	}
	if first, second := report.Paths[0], report.Paths[1]; first.Packets != 1 || second.Packets != 1 ||
		first.Sequence != 8 || second.SSRC != 9 || first.Arrived-second.Arrived != 3000 {
		t.Errorf("the report is %+v", report)
	}
	r.Reset()
	want := [redundancy.Paths]PathCounts{{First: 1, Repeated: 1}, {First: 1}}
	if counts, used := r.Paths(); !used || counts != want {
		t.Errorf("counts are %+v after the end of the connection, expected %+v", counts, want)
	}
	r.Arrived(9, packet, 0, ecn.NotECT, now)
	if len(r.AppendPathReport(nil, now.Add(time.Hour))) > 0 {
		t.Error("the reports outlive the connection")
	}
}
