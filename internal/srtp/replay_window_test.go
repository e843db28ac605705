package srtp

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// windowModel is a replay window that keeps everything.
type windowModel struct {
	limit, highest uint64
	accepted       map[uint64]bool
}

func (m *windowModel) fresh(index uint64) bool {
	return index > m.highest || m.highest-index < m.limit && !m.accepted[index]
}

func (m *windowModel) accept(index uint64) {
	m.accepted[index] = true
	m.highest = max(m.highest, index)
}

// compare steps a window and its model with indices relative to the highest one.
func compare(t *testing.T, limit int, first uint64, steps func(yield func(int64) bool)) {
	t.Helper()
	w := newReplayWindow(limit, first)
	model := windowModel{limit: uint64(limit), highest: first, accepted: map[uint64]bool{first: true}}
	for step := range steps {
		if step < 0 && uint64(-step) > model.highest {
			continue
		}
		index := model.highest + uint64(step)
		fresh := w.fresh(index)
		if want := model.fresh(index); fresh != want {
			t.Fatalf("window %d from %d: index %d, %d from the highest, is fresh: %t, expected %t", limit, first, index,
				step, fresh, want)
		}
		if fresh {
			w.accept(index)
			model.accept(index)
		}
		if w.fresh(index) {
			t.Fatalf("window %d from %d: index %d is fresh after it was accepted", limit, first, index)
		}
		if len(w.words)*64 > max(2*limit, 64*firstWindowWords) {
			t.Fatalf("a window of %d takes %d words", limit, len(w.words))
		}
	}
}

func TestReplayWindow(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, limit := range []int{64, 65, 100, 1000, 1024, 1025, 5000, 8192, 32768} {
		for _, first := range []uint64{0, 1, 63, 64, 1000, 40000, 1 << 40} {
			compare(t, limit, first, func(yield func(int64) bool) {
				for range 6000 {
					var step int64
					switch random.IntN(20) {
					case 0:
						step = random.Int64N(int64(limit))
					case 1:
						step = random.Int64N(200)
					case 2:
						step = -random.Int64N(int64(limit) * 2)
					case 3, 4, 5, 6, 7:
						step = -random.Int64N(200)
					default:
						step = 1 + random.Int64N(3)
					}
					if random.IntN(2000) == 0 {
						step = int64(limit) * 2
					}
					if !yield(step) {
						return
					}
				}
			})
		}
	}
}

// FuzzReplayWindow steps a window and its model with arbitrary indices.
func FuzzReplayWindow(f *testing.F) {
	f.Add(uint16(0), uint16(0), []byte{0, 1, 0, 2, 0xff, 0xff, 0xff, 0xf0, 4, 0, 0xfb, 0xff, 0x7f, 0xff, 0x80, 0})
	f.Add(uint16(2000), uint16(60), []byte{8, 0, 0xf8, 0, 0xf8, 1, 0, 1, 0, 1, 0xff, 0xfe})
	f.Fuzz(func(t *testing.T, limit, first uint16, script []byte) {
		compare(t, MinWindow+int(limit)%(MaxWindow-MinWindow+1), uint64(first), func(yield func(int64) bool) {
			for ; len(script) >= 2; script = script[2:] {
				if !yield(int64(int16(binary.BigEndian.Uint16(script)))) {
					return
				}
			}
		})
	})
}

// TestWindowMemory checks that the memory of a stream depends on its use.
func TestWindowMemory(t *testing.T) {
	w := newReplayWindow(MaxWindow, 5)
	for index := uint64(6); index < 1000; index++ {
		w.accept(index)
	}
	if len(w.words) != firstWindowWords {
		t.Errorf("1,000 packets take %d words", len(w.words))
	}
	for index := uint64(1000); index < 200_000; index++ {
		w.accept(index)
	}
	if len(w.words) != MaxWindow/64 {
		t.Errorf("200,000 packets take %d words", len(w.words))
	}
}

func TestEstimate(t *testing.T) {
	for _, c := range []struct {
		highest  uint64
		sequence uint16
		want     uint64
	}{
		{0, 0, 0},
		{0, 32768, 32768},
		{100, 65535, 65535}, // there is no index below 0
		{32768, 0, 0},
		{32769, 0, 65536},
		{65535, 0, 65536},
		{65536, 65535, 65535},
		{65536 + 100, 32868, 65536 + 32868}, // exactly in the middle
		{65536 + 100, 32869, 32869},
		{65536 + 60000, 27232, 65536 + 27232},
		{65536 + 60000, 27231, 2*65536 + 27231},
		{5<<16 + 3, 65000, 4<<16 + 65000},
		{maxIndex, 0, maxIndex + 1},
	} {
		if got := newReplayWindow(64, c.highest).estimate(c.sequence); got != c.want {
			t.Errorf("%d after %d is %d, expected %d", c.sequence, c.highest, got, c.want)
		}
	}
	if newReplayWindow(64, maxIndex).fresh(maxIndex + 1) {
		t.Error("an index of 49 bits is fresh")
	}
	var none *replayWindow
	if none.estimate(65535) != 65535 || !none.fresh(65535) {
		t.Error("the first packet is not taken as it is")
	}
}
