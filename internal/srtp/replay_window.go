package srtp

// maxIndex is the highest packet index: 32 bits of rollover counter and 16 of sequence number. Beyond the last index
// the key is used up (RFC 3711 section 9.2).
const maxIndex = 1<<48 - 1

// firstWindowWords is the memory of a new window, in words of 64 indices: 1,024 indices in 128 bytes are enough for the
// whole life of most retransmission streams; a window of 32,768 takes 4 kB.
const firstWindowWords = 16

// replayWindow is the replay state of one stream: the highest index, and the accepted indices among the latest (the
// Replay List of RFC 3711 section 3.3.2). The bits of the indices are in a ring that is not shifted (RFC 6479), so a
// packet has the same cost for any window size. The ring doubles until it holds all indices accepted so far or the
// whole window. A nil window is that of a stream without packets.
type replayWindow struct {
	limit   uint64   // size of the window, including the highest index
	highest uint64   // of all accepted indices
	lowest  uint64   // of all accepted indices, also before the window
	words   []uint64 // index i has bit i mod the ring's size, which is a power of two
}

// newReplayWindow returns the window of a stream with the first index.
func newReplayWindow(limit int, first uint64) *replayWindow {
	w := &replayWindow{limit: uint64(limit), highest: first, lowest: first, words: make([]uint64, firstWindowWords)}
	w.set(first)
	return w
}

// estimate extends a sequence number to an index, with the rollover counter that makes the index closest to the highest
// index (RFC 3711 section 3.3.1 and appendix A). There is no index below 0: while the rollover counter is 0, a number
// ahead by more than half of the range counts as ahead, as in Pion and libsrtp.
func (w *replayWindow) estimate(sequence uint16) uint64 {
	if w == nil {
		return uint64(sequence)
	}
	const half, all = 1 << 15, 1 << 16
	distance := int64(sequence) - int64(uint16(w.highest))
	switch {
	case distance > half && w.highest >= all:
		distance -= all
	case distance < -half:
		distance += all
	}
	return uint64(int64(w.highest) + distance)
}

// fresh reports whether an index exists, is not older than the window and has not been accepted.
func (w *replayWindow) fresh(index uint64) bool {
	if w == nil || index > w.highest {
		return index <= maxIndex
	}
	behind := w.highest - index
	if behind >= w.limit {
		return false
	}
	return behind >= w.size() || w.words[w.word(index)]&(1<<(index%64)) == 0
}

// accept records a fresh index.
func (w *replayWindow) accept(index uint64) {
	highest := max(w.highest, index)
	w.lowest = min(w.lowest, index)
	for w.size() < min(w.limit, highest-w.lowest+1) {
		w.grow()
	}
	if highest > w.highest+1 {
		w.forget(w.highest+1, highest-1)
	}
	w.highest = highest
	w.set(index)
}

// size returns the number of indices in the ring.
func (w *replayWindow) size() uint64 { return uint64(len(w.words)) * 64 }

// word returns the position of an index's word in the ring.
func (w *replayWindow) word(index uint64) uint64 { return index / 64 & (uint64(len(w.words)) - 1) }

// set sets the bit of an index.
func (w *replayWindow) set(index uint64) { w.words[w.word(index)] |= 1 << (index % 64) }

// forget clears the bits of the indices from first to last.
func (w *replayWindow) forget(first, last uint64) {
	if last-first >= w.size() {
		clear(w.words)
		return
	}
	for base := first &^ 63; base <= last; base += 64 {
		bits := ^uint64(0)
		if base < first {
			bits <<= first - base
		}
		if last-base < 63 {
			bits &= 1<<(last-base+1) - 1
		}
		w.words[w.word(base)] &^= bits
	}
}

// grow doubles the ring.
func (w *replayWindow) grow() {
	old := *w
	w.words = make([]uint64, 2*len(old.words))
	// The word of the highest index holds, above the highest, the oldest indices, one ring size before. Before index 0
	// there are none, and no bits.
	top := old.words[old.word(w.highest)]
	newest := ^uint64(0) >> (63 - w.highest%64)
	w.words[w.word(w.highest)] = top & newest
	w.words[w.word(w.highest-old.size())] = top &^ newest
	for n := uint64(1); n < uint64(len(old.words)); n++ {
		index := w.highest - 64*n
		w.words[w.word(index)] = old.words[old.word(index)]
	}
}
