package dataflow

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

// TestLimits exceeds the number of messages per second, and then the bytes.
func TestLimits(t *testing.T) {
	now := time.Unix(1_795_188_600, 0)
	f := NewFlow(Config{Rate: 5, ByteRate: 100})
	m := &signal.Data{Text: "x"}
	for i := range 10 {
		if refused := f.Allow(now, m); refused != nil {
			t.Fatalf("message %d of a burst: %v", i, refused)
		}
	}
	if refused := f.Allow(now, m); refused == nil || refused.Code != signal.CodeLimit {
		t.Errorf("the message after the burst: %v", refused)
	}
	now = now.Add(time.Second)
	if refused := f.Allow(now, &signal.Data{Text: string(make([]byte, 300))}); refused == nil {
		t.Error("a message above the bytes passes")
	}
	if refused := f.Allow(now, m); refused != nil {
		t.Errorf("a second later: %v", refused)
	}
}

// TestContinue: the numbers of lossy messages of each home are above those of the former homes.
func TestContinue(t *testing.T) {
	last := int64(0)
	for epoch := range uint64(3) {
		f := NewFlow(Config{Rate: 5, ByteRate: 100})
		f.Continue(7, 9, epoch)
		if f.Received.Last() != 7 || f.Sent.Last() != 9 {
			t.Errorf("reliable messages continue after %d and %d", f.Received.Last(), f.Sent.Last())
		}
		if seq := f.NextLossy(); seq <= last {
			t.Errorf("home %d begins at %d, after %d", epoch, seq, last)
		} else {
			last = seq
		}
	}
	if seq := lossyBase(1 << 63); seq < 0 || seq > signal.MaxSeq {
		t.Errorf("the numbers of a late home begin at %d", seq)
	}
}
