package present

import (
	"slices"
	"time"
)

// Audio simulates the playback of one audio publication. A packet that arrives after the playout time is lost, as with
// a real audio device.
type Audio struct {
	// waiting has the packets that are not due, in order of capture time.
	waiting []sound
	// played has the newest played packets, in order of capture time.
	played []played
	late   int64
}

// sound is one audio packet.
type sound struct {
	capture  time.Time
	duration time.Duration
}

// played is a packet with the time at which playback began.
type played struct {
	sound
	begun time.Time
}

const (
	// maxWaiting bounds the waiting packets: 10 s of 20 ms packets. Only packets with capture times in the future reach
	// it.
	maxWaiting = 500
	// maxPlayed is the number of played packets that are kept: 1.28 s of 20 ms packets. Video that is shown now was
	// captured within the last second.
	maxPlayed = 64
	// maxGap is the longest pause after a packet in which the timeline is extrapolated. Lost packets are concealed;
	// during a longer pause nothing is audible.
	maxGap = 200 * time.Millisecond
)

// Arrived adds a packet. A packet that should already have been played completely is counted as late.
func (a *Audio) Arrived(capture time.Time, duration time.Duration, now time.Time, delay time.Duration) {
	if capture.Add(duration + delay).Before(now) {
		a.late++
		return
	}
	i, twice := slices.BinarySearchFunc(a.waiting, capture,
		func(s sound, c time.Time) int { return s.capture.Compare(c) })
	if twice {
		return
	}
	a.waiting = slices.Insert(a.waiting, i, sound{capture, duration})
	if len(a.waiting) > maxWaiting {
		a.waiting = slices.Delete(a.waiting, 0, 1)
	}
}

// Step starts playback of the packets that are due. Playback begins exactly at the playout time, because devices are
// filled ahead of time.
func (a *Audio) Step(now time.Time, delay time.Duration) {
	n := 0
	for _, s := range a.waiting {
		begin := s.capture.Add(delay)
		if begin.After(now) {
			break
		}
		a.played = append(a.played, played{s, begin})
		n++
	}
	a.waiting = slices.Delete(a.waiting, 0, n)
	if extra := len(a.played) - maxPlayed; extra > 0 {
		a.played = slices.Delete(a.played, 0, extra)
	}
}

// PlayedAt returns the time at which the sound captured at the given time is audible, according to the last packet that
// begins before that capture time. PlayedAt returns false if no packet covers the time within maxGap.
func (a *Audio) PlayedAt(capture time.Time) (time.Time, bool) {
	for _, p := range slices.Backward(a.played) {
		if after := capture.Sub(p.capture); after >= 0 {
			return p.begun.Add(after), after < p.duration+maxGap
		}
	}
	return time.Time{}, false
}

// Late returns the number of packets that arrived after the playout time.
func (a *Audio) Late() int64 { return a.late }
