package hotpath

import (
	"bytes"
	"context"
	"errors"
	"testing"
)

func TestLimit(t *testing.T) {
	limit, err := MeasureLimit(context.Background())
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
	if _, err := MeasureLimit(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: got %v", err)
	}
}

func TestSealedPacketsOpen(t *testing.T) {
	s, err := newSealer()
	if err != nil {
		t.Fatal(err)
	}
	first, second := s.seal(nil), s.seal(nil)
	if len(first) != sealedBytes || bytes.Equal(first[rtpHeader:], second[rtpHeader:]) {
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

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := median(test.values); got != test.want {
			t.Errorf("median of %v is %g, want %g", test.values, got, test.want)
		}
	}
}
