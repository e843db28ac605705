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
	// rateStep is the minimum time between the frames in marks, so that rateMarks cover the window at any frame rate.
	rateStep  = rateWindow / (rateMarks - 2)
	rateMarks = 16
	// silentAfter is the time after the start of the last frame at which the rate of a track becomes unknown.
	silentAfter = time.Second
)

// SteadyAfter is the time that a track has to be steady before Rate counts: the window of the measurement, and three
// frames at 30 per second. After a pause within the window the rate is too low, and two frames that arrive together, as
// on a busy host, can have any rate.
const SteadyAfter = rateWindow + 100*time.Millisecond

// frameRate measures the bit rate of a track over whole frames, from the first packet of one frame to the first packet
// of another. The rate within a burst would be the rate of the publisher's line. The reader owns the state, except for
// the atomic fields, which any goroutine may read.
type frameRate struct {
	// bytes counts payload bytes, without parity.
	bytes uint64
	// marks are frames that began within the window, in a ring of count entries that starts at first.
	marks        [rateMarks]rateMark
	first, count int

	// rate is in bit/s, 0 while unknown. begun is the start of the last frame, resumed the start of the first frame
	// after the last pause of silentAfter, both since the engine's start.
	rate, begun, resumed atomic.Int64
}

// rateMark is the start of a frame, and the number of bytes received before.
type rateMark struct {
	at    time.Duration
	bytes uint64
}

// add adds a packet. opens is set if the packet begins a frame.
func (f *frameRate) add(size int, opens bool, at time.Duration) {
	if opens {
		f.open(at)
	}
	f.bytes += uint64(size)
}

// open adds the start of a frame.
func (f *frameRate) open(at time.Duration) {
	if at-time.Duration(f.begun.Load()) > silentAfter {
		f.count = 0
		f.rate.Store(0)
	}
	// The rate is measured from the youngest frame that is at least as old as the window.
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
	if f.count == 0 {
		f.resumed.Store(int64(at))
	}
	if f.count == 0 || f.count < rateMarks && at-f.mark(f.count-1).at >= rateStep {
		f.count++
		*f.mark(f.count - 1) = rateMark{at, f.bytes}
	}
	f.begun.Store(int64(at))
}

func (f *frameRate) mark(i int) *rateMark { return &f.marks[(f.first+i)%rateMarks] }

// value returns the rate. value returns false before two frames have begun, and if the last frame is older than
// silentAfter.
func (f *frameRate) value(now time.Duration) (volumetric.Bitrate, bool) {
	rate := f.rate.Load()
	if rate == 0 || now-time.Duration(f.begun.Load()) > silentAfter {
		return 0, false
	}
	return volumetric.Bitrate(rate), true
}

// steady returns the time since the first frame after the last pause, 0 before the first frame and during a pause.
func (f *frameRate) steady(now time.Duration) time.Duration {
	begun := time.Duration(f.begun.Load())
	if begun == 0 || now-begun > silentAfter {
		return 0
	}
	return now - time.Duration(f.resumed.Load())
}

// Rate returns the rate of RTP payload on the track in bit/s, without parity, over the frames of about the last second.
// Rate returns false before two frames have arrived, and if no frame has begun for a second. Rate is safe for any
// goroutine.
func (t *Track) Rate() (volumetric.Bitrate, bool) {
	return t.rate.value(time.Duration(t.tracks.clock.Since(t.tracks.clock.Now())))
}

// Steady returns the time for which frames have arrived without a pause of a second, up to now, and 0 during a pause.
// The rate of frames that arrive together after a pause is not that of the track. Steady is safe for any goroutine.
func (t *Track) Steady() time.Duration {
	return t.rate.steady(time.Duration(t.tracks.clock.Since(t.tracks.clock.Now())))
}
