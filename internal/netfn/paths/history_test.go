package paths

import (
	"testing"

	"github.com/volsfu/volsfu/internal/netfn/wire"
)

// TestManyRows checks that a report with more rows than fit keeps those of missed numbers.
func TestManyRows(t *testing.T) {
	o := NewObserver(0, ms)
	o.SetDeadline(50 * ms)
	for _, late := range []bool{false, true} {
		for number := range uint32(1 << 7) {
			inTime := Set(number) | 1<<7
			for path := range wire.MaxPaths {
				if inTime.Has(path) == late {
					continue
				}
				delay := 20 * ms
				if late {
					delay = 120 * ms
				}
				o.Add(Sample{Number: number, Path: uint8(path), Set: 0xff, Sent: 1_000_000, Arrived: 5*1000*ms + delay})
			}
		}
	}
	o.Due(5*1000*ms + 300*ms)
	r := o.Report(5*1000*ms + 300*ms)
	if len(r.Rows) != wire.MaxReportRows {
		t.Fatalf("the report has %d rows, want %d", len(r.Rows), wire.MaxReportRows)
	}
	for i := 1; i < len(r.Rows); i++ {
		if Set(r.Rows[i].InTime).Len() < Set(r.Rows[i-1].InTime).Len() {
			t.Fatalf("row %d has fewer paths in time than the row before", i)
		}
	}
	if _, err := r.AppendBinary(nil); err != nil {
		t.Error(err)
	}
}

// TestLostSamples checks that a flood of numbers that all stay pending neither grows the memory nor stops the
// judgement.
func TestLostSamples(t *testing.T) {
	o := NewObserver(0, 50*ms)
	for number := range uint32(3 * maxPending) {
		o.Add(Sample{Number: number, Set: 1, Sent: 1_000_000, Arrived: 5 * 1000 * ms})
	}
	if len(o.pending.index) != maxPending {
		t.Errorf("%d numbers are pending, the limit is %d", len(o.pending.index), maxPending)
	}
	o.Due(5*1000*ms + 500*ms)
	if r := o.Report(5*1000*ms + 500*ms); len(o.pending.index) != 0 || r.Paths[0].Copies != maxPending {
		t.Errorf("%d numbers are pending, and %d are judged", len(o.pending.index), r.Paths[0].Copies)
	}
}
