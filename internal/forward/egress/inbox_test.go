package egress

import (
	"testing"

	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestAnInboxIsFreeAfterAPanic lets a receiver's goroutine panic while it adds a request to the inbox of a shared
// writer.
func TestAnInboxIsFreeAfterAPanic(t *testing.T) {
	r := newRig(t, nil)
	s := r.subscribe(1000, volumetric.KindVideo)
	inbox := &s.receiver.writer.inbox
	guard := panics.NewGuard(func(panics.Report) {}, "receiver")
	report := make([]byte, maxReportBytes/4)
	// The stored bytes are not reports, so dropping the older half of them panics.
	s.receiver.reports.waiting = make([]byte, maxReportBytes-1)
	for n := range s.receiver.reports.waiting {
		s.receiver.reports.waiting[n] = 0xff
	}
	if guard.Try("receiver", func() { inbox.onReport(s.receiver, report, 0) }) {
		t.Fatal("nothing panicked")
	}
	if !inbox.mu.TryLock() {
		t.Fatal("the inbox is locked")
	}
	inbox.mu.Unlock()
}
