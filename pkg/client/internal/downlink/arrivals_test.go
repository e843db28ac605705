package downlink

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/pkg/client/internal/hostclock"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// TestReportsByStreamGoOn: a second answer that agrees on reports by stream does not restart the reports; another
// connection begins with reports of numbers.
func TestReportsByStreamGoOn(t *testing.T) {
	clock := hostclock.New(frametimes.SourceSystem, 0)
	r := New(Config{}, 1, &clock)
	now := time.Unix(1000, 0)
	packet := []byte{0x80, 96, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9}
	arrive := func() { r.Arrived(9, packet, 0, ecn.NotECT, now) }
	reports := func() int {
		n := 0
		for len(r.AppendArrivals(nil, now.Add(time.Second))) > 0 {
			n++
		}
		return n
	}
	if arrive(); reports() > 0 || !r.ArrivalsDue().IsZero() {
		t.Error("arrivals are reported by stream before that is agreed on")
	}
	r.Report(0, true)
	arrive()
	if r.Report(0, true); r.ArrivalsDue().IsZero() || reports() != 1 {
		t.Error("another answer has begun the reports again")
	}
	arrive()
	if r.Report(0, false); reports() > 0 {
		t.Error("an answer without reports by stream does not end them")
	}
	r.Report(0, true)
	arrive()
	if r.Reset(); reports() > 0 {
		t.Error("the reports outlive the connection")
	}
}
