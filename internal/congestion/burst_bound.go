package congestion

import "time"

const (
	// burstMost is the largest burst: with it a frame that fills its interval of 33 ms takes 20 ms, as in paper 000,
	// and less would not be noticed.
	burstMost = 13 * time.Millisecond
	// burstFirst is the first burst, and burstTime the time without a mark, 7 frames at 30 per second, after which a
	// burst doubles.
	burstFirst = 2 * time.Millisecond
	burstTime  = 250 * time.Millisecond
	// burstQueue is a queue that ends bursts like a mark: more than the step of arrival times, 1 ms.
	burstQueue = 2 * time.Millisecond
	// burstRetry is the time after the end of bursts for which they are at most half as long, or for which there are
	// none if that is less than burstLeast: the pacer counts milliseconds (pacing.Path), and frames would leave
	// smoothly while their marks count as marks of bursts.
	burstRetry = time.Minute
	burstLeast = time.Millisecond
)

// burstBound finds the longest burst that a path admits without marks and without a queue, while the rate has its upper
// limit. Such a rate cannot grow, so that smooth frames would only be late. A marker that meters the rate admits bursts
// of its depth.
type burstBound struct {
	length  time.Duration // queue on a path with the rate of the estimate, 0 for smooth frames
	most    time.Duration // bound of length until retry
	retry   time.Duration
	changed time.Duration // time of the last change, or at which the rate was below its limit
}

// grow doubles the burst if it is time. bounded is set while the rate has its upper limit.
func (b *burstBound) grow(now time.Duration, bounded bool) {
	if now >= b.retry {
		b.most = burstMost
	}
	switch {
	case !bounded:
		b.length, b.changed = 0, now
	case now-b.changed >= burstTime:
		b.length, b.changed = min(max(2*b.length, burstFirst), b.most), now
	}
}

// met ends bursts, because a packet was marked or met a queue.
func (b *burstBound) met(now time.Duration) {
	if b.length > 0 {
		b.most, b.retry = b.length/2, now+burstRetry
		if b.most < burstLeast {
			b.most = 0
		}
	}
	b.length, b.changed = 0, now
}
