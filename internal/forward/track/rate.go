package track

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// rateWindow is the time over which the rate of a track is measured: 30 frames, whose sizes vary.
	rateWindow = time.Second
	// rateStep is the least time between the frames that are remembered, so that rateMarks cover the window at any
	// number of frames per second.
	rateStep  = rateWindow / (rateMarks - 2)
	rateMarks = 16
	// silentAfter is how long after the last frame has begun a track has no rate any more.
	silentAfter = time.Second
)

// frameRate measures the bit rate of a track over whole frames, from the first packet of one to that of another: what
// lies between came within bursts, whose rate would be that of the publisher's line. The reader owns it, but for rate
// and begun, which anyone may read.
type frameRate struct {
	// bytes counts payloads, without parity.
	bytes uint64
	// marks are frames that have begun within the window, in a ring: count of them from first on.
	marks        [rateMarks]rateMark
	first, count int

	// rate is in bit/s, 0 while unknown; begun is when the last frame began, since the engine's start.
	rate, begun atomic.Int64
}

// rateMark is the beginning of a frame, and what had come before.
type rateMark struct {
	at    time.Duration
	bytes uint64
}

// add takes a packet, which begins a frame or does not.
func (f *frameRate) add(size int, opens bool, at time.Duration) {
	if opens {
		f.open(at)
	}
	f.bytes += uint64(size)
}

// open takes the beginning of a frame.
func (f *frameRate) open(at time.Duration) {
	if at-time.Duration(f.begun.Load()) > silentAfter {
		f.count = 0
		f.rate.Store(0)
	}
	// The youngest frame that is as old as the window is the one to measure from.
	for f.count > 1 && at-f.mark(1).at >= rateWindow {
		f.first = (f.first + 1) % rateMarks
		f.count--
	}
	if f.count > 0 {
		since := f.mark(0)
		if elapsed := at - since.at; elapsed > 0 {
			f.rate.Store(int64(math.Round(float64(f.bytes-since.bytes) * 8 / elapsed.Seconds())))
		}
	}
	if f.count == 0 || f.count < rateMarks && at-f.mark(f.count-1).at >= rateStep {
		f.count++
		*f.mark(f.count - 1) = rateMark{at, f.bytes}
	}
	f.begun.Store(int64(at))
}

func (f *frameRate) mark(i int) *rateMark { return &f.marks[(f.first+i)%rateMarks] }

// value is the rate, which is not ok before two frames have begun, and once the last one is too long ago.
func (f *frameRate) value(now time.Duration) (volumetric.Bitrate, bool) {
	rate := f.rate.Load()
	if rate == 0 || now-time.Duration(f.begun.Load()) > silentAfter {
		return 0, false
	}
	return volumetric.Bitrate(rate), true
}

// Rate is the rate of RTP payload on the track in bit/s, without parity, over the frames of about the last second. It
// is not ok before two frames have come, and once none has begun for a second. It is safe for any goroutine.
func (t *Track) Rate() (volumetric.Bitrate, bool) {
	return t.rate.value(time.Duration(t.tracks.clock.Since(t.tracks.clock.Now())))
}
