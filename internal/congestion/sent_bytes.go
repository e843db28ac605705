package congestion

import "time"

const (
	// The bins cover 640 ms, more than the queue of a path without a silence.
	sentBin  = 10 * time.Millisecond
	sentBins = 64
)

// sentBytes counts recently sent or acknowledged bytes.
type sentBytes struct {
	bins   [sentBins]uint32 // bytes; bin n is at index n mod sentBins
	newest int64
}

func (s *sentBytes) add(now time.Duration, size int) {
	s.advance(now)
	s.bins[s.newest%sentBins] += uint32(size)
}

func (s *sentBytes) advance(now time.Duration) {
	bin := max(int64(now/sentBin), s.newest)
	if bin-s.newest >= sentBins {
		*s = sentBytes{newest: bin}
	}
	for s.newest < bin {
		s.newest++
		s.bins[s.newest%sentBins] = 0
	}
}

// since returns the bytes sent after a time, without those in the same bin.
func (s *sentBytes) since(now, after time.Duration) int {
	s.advance(now)
	sum := 0
	for bin := max(int64(after/sentBin)+1, s.newest-sentBins+1, 0); bin <= s.newest; bin++ {
		sum += int(s.bins[bin%sentBins])
	}
	return sum
}
