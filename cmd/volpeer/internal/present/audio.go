package present

import (
	"slices"
	"time"
)

// Audio plays the packets of one sound at their time. A packet that comes after its time is lost, as to any device that
// plays on.
type Audio struct {
	// waiting are packets that are not due yet, by capture.
	waiting []sound
	// played are the newest packets, by capture.
	played []played
	late   int64
}

// sound is one packet.
type sound struct {
	capture  time.Time
	duration time.Duration
}

// played is a packet and when it began to sound.
type played struct {
	sound
	begun time.Time
}

const (
	// maxWaiting bounds the packets that wait: ten seconds of 20 ms packets, where captures lie in the future.
	maxWaiting = 500
	// maxPlayed is how many played packets are remembered: video shown now was captured within the last second.
	maxPlayed = 64
	// maxGap is how far after a packet the time line still follows from it. Lost packets are concealed; after a longer
	// pause nothing is heard.
	maxGap = 200 * time.Millisecond
)

// Arrived takes one packet.
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

// Step begins what is due. A packet begins at its time exactly: devices take sound ahead of it.
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

// PlayedAt is when the sound of a capture time is heard, by the packet that began last before it; it tells false where
// there was none lately.
func (a *Audio) PlayedAt(capture time.Time) (time.Time, bool) {
	for _, p := range slices.Backward(a.played) {
		if after := capture.Sub(p.capture); after >= 0 {
			return p.begun.Add(after), after < p.duration+maxGap
		}
	}
	return time.Time{}, false
}

// Late is how many packets came too late to be played.
func (a *Audio) Late() int64 { return a.late }
