package congestion

import (
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// batchTime is twice the resolution of the times in transport-wide feedback.
	batchTime = 500 * time.Microsecond
	// Batches are close where five follow the first one within a window, which lasts for as long as a window of bursts, or for one gap between two of them longer.
	closeBatches = 5
	closeLeast   = burstWindow * time.Millisecond
	closeMost    = closeLeast + closeLeast/(closeBatches-1)
	// maxBatches is more than there are in closeMost.
	maxBatches = 32
	// The usual rate is an average over some eight frames at up to 25 per second, of the highest rate in each: what a host or a link was held up by for a moment, and caught up with, has no
	// weight in it.
	usualEpoch = 40 * time.Millisecond
	usualShare = 8
)

// batches measures the rate at which packets arrive while they do so without gaps, in batches of those that arrived together.
//
// Hosts hand over what came since they looked last, every millisecond, or after they have stood still for five. A window of ten that begins and ends with a batch holds one more
// than the path has carried in it, so that the highest rate of windows is 10 or 50 % above the path's. Here a window begins after a batch, and ends with another.
type batches struct {
	ring         [maxBatches]batch
	begin, count int
	bytes        int64 // of all but the first
	rates        feedback.WindowMax[float64]
	epoch        time.Duration // when the latest of usualEpoch began
	highest      float64       // rate in it
	usual        float64       // bit/s, 0 while unknown
}

// batch is packets that arrived together.
type batch struct {
	at    time.Duration
	bytes int64
}

func (b *batches) at(n int) *batch { return &b.ring[(b.begin+n)%maxBatches] }

// add takes a packet. One that arrived before others belongs to the latest batch.
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

// average takes what an epoch has shown.
func (b *batches) average() {
	switch {
	case b.highest == 0:
	case b.usual == 0:
		b.usual = b.highest
	default:
		b.usual += (b.highest - b.usual) / usualShare
	}
}

// push begins a batch, and leaves out the first ones as long as a whole window remains.
func (b *batches) push(at time.Duration) {
	b.count++
	*b.at(b.count - 1) = batch{at: at}
	for b.count == maxBatches || b.count > 2 && at-b.at(1).at >= closeLeast {
		b.begin, b.count = (b.begin+1)%maxBatches, b.count-1
		b.bytes -= b.at(0).bytes
	}
}

// rate is the highest of late in bit/s, 0 where batches were not close.
func (b *batches) rate() float64 { return b.rates.Value() }
