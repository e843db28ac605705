package congestion

import (
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// batchTime is twice the resolution of the times in transport-wide feedback.
	batchTime = 500 * time.Microsecond
	// Batches are contiguous if five follow the first within a window. The window lasts for burstWindow, or longer by
	// one gap between two batches.
	closeBatches = 5
	closeLeast   = burstWindow * time.Millisecond
	closeMost    = closeLeast + closeLeast/(closeBatches-1)
	// maxBatches exceeds the number of batches in closeMost.
	maxBatches = 32
	// The mean burst rate is an average over about eight frames, at up to 25 per second, of the maximum of each epoch.
	// A single burst that follows a stall of a host or link has little weight.
	usualEpoch = 40 * time.Millisecond
	usualShare = 8
)

// batches measures the rate of packets that arrive without gaps. A batch is the set of packets that arrived together.
//
// Hosts deliver packets in batches, for example once per millisecond, or after a stall of 5 ms. A window of 10 ms that
// begins and ends with a batch holds one batch more than the path carried in that time, so the maximum over windows is
// 10 to 50 % too high. Here a window begins after one batch and ends with another.
type batches struct {
	ring         [maxBatches]batch
	begin, count int
	bytes        int64 // bytes of all batches except the first
	rates        feedback.WindowMax[float64]
	epoch        time.Duration // start of the current usualEpoch
	highest      float64       // highest rate of this epoch, bit/s
	usual        float64       // mean burst rate in bit/s, 0 while unknown
}

// batch is a set of packets that arrived together.
type batch struct {
	at    time.Duration
	bytes int64
}

func (b *batches) at(n int) *batch { return &b.ring[(b.begin+n)%maxBatches] }

// add adds a packet. A packet that arrived before the latest batch counts as part of that batch.
func (b *batches) add(arrived time.Duration, size int) {
	if b.count == 0 || arrived >= b.at(b.count-1).at+batchTime {
		b.push(arrived)
	}
	last := b.at(b.count - 1)
	last.bytes += int64(size)
	if b.count > 1 {
		b.bytes += int64(size)
	}
	rate := 0.0
	if window := last.at - b.at(0).at; b.count > closeBatches && window >= closeLeast && window < closeMost {
		rate = float64(b.bytes) * 8 / window.Seconds()
	}
	b.rates.Add(last.at, rate, burstEpoch*time.Millisecond)
	if last.at-b.epoch >= usualEpoch {
		b.average()
		b.epoch, b.highest = last.at, 0
	}
	b.highest = max(b.highest, rate)
}

// average adds the maximum of the last epoch to the mean.
func (b *batches) average() {
	switch {
	case b.highest == 0:
	case b.usual == 0:
		b.usual = b.highest
	default:
		b.usual += (b.highest - b.usual) / usualShare
	}
}

// push begins a batch and removes the oldest batches as long as a whole window remains.
func (b *batches) push(at time.Duration) {
	b.count++
	*b.at(b.count - 1) = batch{at: at}
	for b.count == maxBatches || b.count > 2 && at-b.at(1).at >= closeLeast {
		b.begin, b.count = (b.begin+1)%maxBatches, b.count-1
		b.bytes -= b.at(0).bytes
	}
}

// rate returns the highest recent rate in bit/s, or 0 if batches were not contiguous.
func (b *batches) rate() float64 { return b.rates.Value() }
