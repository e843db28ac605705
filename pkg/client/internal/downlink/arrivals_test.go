package downlink

import (
	"testing"

	"github.com/volsfu/volsfu/pkg/client/internal/hostclock"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// TestReportsByStreamGoOn: a second answer that agrees on reports by stream does not restart the reports.
func TestReportsByStreamGoOn(t *testing.T) {
	clock := hostclock.New(frametimes.SourceSystem, 0)
	r := New(Config{}, 1, &clock)
	if r.arrivals.streams != nil {
		t.Error("arrivals are reported by stream before that is agreed on")
	}
	r.ReportByStream(true)
	recorder := r.arrivals.streams
	if r.ReportByStream(true); recorder == nil || r.arrivals.streams != recorder {
		t.Error("another answer has begun the reports again")
	}
	if r.ReportByStream(false); r.arrivals.streams != nil {
		t.Error("an answer without reports by stream does not end them")
	}
	r.ReportByStream(true)
	if r.Reset(); r.arrivals.streams != nil {
		t.Error("the reports outlive the connection")
	}
}
