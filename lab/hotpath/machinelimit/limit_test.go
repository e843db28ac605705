package machinelimit

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/volsfu/volsfu/lab/hotpath/mediasocket"
)

func TestLimit(t *testing.T) {
	limit, err := Measure(context.Background())
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, cost := range map[string]float64{
		"seal and segmented send": limit.SealSegmented, "plain send": limit.PlainSend, "receive": limit.Receive,
		"receive in runs": limit.Coalesced,
	} {
		if cost <= 0 {
			t.Errorf("%s takes %g µs", name, cost)
		}
	}
	if got, want := limit.Ceiling(10), limit.SealSegmented+limit.Receive/10; got != want {
		t.Errorf("for 10 receivers: %g, want %g", got, want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Measure(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: got %v", err)
	}
}

func TestSealedPacketsOpen(t *testing.T) {
	s, err := newSealer()
	if err != nil {
		t.Fatal(err)
	}
	first, second := s.seal(nil), s.seal(nil)
	if len(first) != sealedBytes || bytes.Equal(first[mediasocket.RTPHeader:], second[mediasocket.RTPHeader:]) {
		t.Errorf("%d and %d bytes, equal %v", len(first), len(second), bytes.Equal(first, second))
	}
	for _, packet := range [][]byte{second, first} {
		if err := s.open(packet); err != nil {
			t.Error(err)
		}
	}
	if err := s.open(s.seal(nil)[:100]); err == nil {
		t.Error("a truncated packet was opened")
	}
}
