package feedback

import (
	"testing"
	"time"
)

func TestSendHistory(t *testing.T) {
	cfg := HistoryConfig{MaxAge: time.Second, MaxBytes: 10_000_000}
	h := NewSendHistory(cfg)
	if _, ok := h.Get(0); ok {
		t.Fatal("an empty history has packet 0")
	}
	first := uint16(65000)
	payload := make([]byte, 1000)
	for i := range 5000 {
		h.Put(Sent{Sequence: first + uint16(i), Timestamp: uint32(i), Payload: payload,
			At: after(time.Duration(i) * time.Millisecond)})
	}
	// Packets of the last second, both ends included, across the wrap of 16 bits and several growths.
	if h.Len() != 1001 || h.Bytes() != 1_001_000 {
		t.Fatalf("%d packets of %d bytes", h.Len(), h.Bytes())
	}
	for i, want := range map[int]bool{0: false, 3998: false, 3999: true, 4500: true, 4999: true, 5000: false} {
		p, ok := h.Get(first + uint16(i))
		if ok != want || ok && p.Timestamp != uint32(i) {
			t.Errorf("packet %d: %v, %+v", i, ok, p)
		}
	}
	h.Expire(after(5500 * time.Millisecond))
	if h.Len() != 500 {
		t.Fatalf("%d packets after a pause", h.Len())
	}
	h.Put(Sent{Sequence: 7, At: after(5500 * time.Millisecond)})
	if _, ok := h.Get(7); !ok || h.Len() != 1 || h.Bytes() != 0 {
		t.Fatalf("%d packets after a jump", h.Len())
	}
}

func TestSendHistoryLimits(t *testing.T) {
	h := NewSendHistory(HistoryConfig{MaxAge: time.Hour, MaxBytes: 3000})
	for i := range 10 {
		h.Put(Sent{Sequence: uint16(i), Payload: make([]byte, 1000), At: start})
	}
	if _, ok := h.Get(6); ok || h.Len() != 3 || h.Bytes() != 3000 {
		t.Fatalf("%d packets of %d bytes", h.Len(), h.Bytes())
	}
	h.Put(Sent{Sequence: 10, Payload: make([]byte, 5000), At: start})
	if _, ok := h.Get(10); !ok || h.Len() != 1 {
		t.Fatalf("%d packets with one that is too large by itself", h.Len())
	}
	h = NewSendHistory(HistoryConfig{MaxAge: time.Hour, MaxBytes: 3000})
	for i := range 3 * maxHistory {
		h.Put(Sent{Sequence: uint16(i), At: start})
	}
	if h.Len() != maxHistory || len(h.ring) != maxHistory {
		t.Fatalf("%d packets in a ring of %d", h.Len(), len(h.ring))
	}
}

func BenchmarkSendHistory(b *testing.B) {
	h := NewSendHistory(DefaultConfig().History)
	payload := make([]byte, 1160)
	now, sequence := start, uint16(0)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(100 * time.Microsecond)
		sequence++
		h.Put(Sent{Sequence: sequence, Payload: payload, At: now})
		if _, ok := h.Get(sequence - 20); !ok && sequence > 100 {
			b.Fatal("a packet just sent is missing")
		}
	}
}
