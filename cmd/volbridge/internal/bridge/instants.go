package bridge

import "time"

const (
	// keptInstants is the number of capture instants that are kept for tiles that are encoded later than others: half a
	// second at 60 frames per second.
	keptInstants = 32
	// maxSkew is the largest plausible difference of the time in a frame's header from this host's clock.
	maxSkew = 5 * time.Second
	// minStep is the smallest difference of consecutive capture times of a publication, which must increase.
	minStep = time.Millisecond
)

// Instants numbers capture instants. Frames of all tiles and qualities with the same time in their header were captured
// together and have the same number.
type Instants struct {
	kept [keptInstants]instant
	next uint32
	// latest is the capture time of the newest instant.
	latest time.Time
	// tracks has, for each track, the number after that of the newest frame.
	tracks []uint32
}

// instant is one capture. after is the number plus one; after is 0 in an unused entry.
type instant struct {
	stamp   uint64
	after   uint32
	capture time.Time
}

// NewInstants returns a numbering of the given number of tracks that begins at 0.
func NewInstants(tracks int) *Instants { return &Instants{tracks: make([]uint32, tracks)} }

// NewInstantsSince returns a numbering that begins at a number derived from the clock. The number is higher than all
// earlier ones, for receivers that outlive the bridge and reject lower numbers.
func NewInstantsSince(now time.Time, tracks int) *Instants {
	n := NewInstants(tracks)
	n.next = FirstNumber(now)
	return n
}

// Next returns the number and the capture time of a track's next frame. stamp is the time in the frame's header in
// milliseconds. The numbers of one track increase even if stamps repeat or decrease. An implausible stamp is replaced
// by the arrival time now.
func (n *Instants) Next(track int, stamp uint64, now time.Time) (number uint32, capture time.Time) {
	at := instant{stamp: stamp}
	for _, kept := range n.kept {
		if kept.after > n.tracks[track] && kept.stamp == stamp {
			at = kept
		}
	}
	if at.after == 0 {
		at.after, at.capture = n.next+1, plausible(stamp, now)
		if !n.latest.IsZero() && at.capture.Sub(n.latest) < minStep {
			at.capture = n.latest.Add(minStep)
		}
		n.latest = at.capture
		n.kept[n.next%keptInstants] = at
		n.next++
	}
	n.tracks[track] = at.after
	return at.after - 1, at.capture
}

// plausible returns the time of a stamp in milliseconds, or now if the stamp is implausible.
func plausible(stamp uint64, now time.Time) time.Time {
	if claimed := time.UnixMilli(int64(stamp)); claimed.Sub(now).Abs() <= maxSkew {
		return claimed
	}
	return now
}
