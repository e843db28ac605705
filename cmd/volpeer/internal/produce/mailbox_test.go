package produce

import (
	"context"
	"testing"
)

func TestMailbox(t *testing.T) {
	m := newMailbox[int]()
	ctx := t.Context()
	if older, replaced := m.put(1); replaced {
		t.Errorf("the first thing replaced %d", older)
	}
	if older, replaced := m.put(2); !replaced || older != 1 {
		t.Errorf("expected the second thing to replace 1, got %d, %v", older, replaced)
	}
	if v, err := m.take(ctx); v != 2 || err != nil {
		t.Errorf("expected 2, got %d, %v", v, err)
	}
	taken := make(chan int)
	go func() {
		v, _ := m.take(ctx)
		taken <- v
	}()
	if older, replaced := m.put(3); replaced {
		t.Errorf("after it was emptied, 3 replaced %d", older)
	}
	if v := <-taken; v != 3 {
		t.Errorf("expected the one who waits to get 3, got %d", v)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if v, err := m.take(ended); err == nil {
		t.Errorf("expected an error of an ended context, got %d", v)
	}
}
