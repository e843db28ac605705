package bridge

import "time"

const (
	// keptInstants is how many capture instants are remembered for tiles that are encoded later than others: half a
	// second at 60 frames per second.
	keptInstants = 32
	// maxSkew is how far the time in a frame's header may be from this host's clock to be believed.
	maxSkew = 5 * time.Second
	// minStep is how much later than the one before an instant is at least: captures of one publication go forward.
	minStep = time.Millisecond
)

// Instants numbers capture instants. Frames of all tiles and qualities with the same time in their header were captured
// together, and get one number.
type Instants struct {
	kept [keptInstants]instant
	next uint32
	// latest is the capture time of the newest instant.
	latest time.Time
	// tracks hold the number after that of the newest frame of each track.
	tracks []uint32
}

// instant is one capture. It is void where the number plus one, which is kept, is 0.
type instant struct {
	stamp   uint64
	after   uint32
	capture time.Time
}

// NewInstants numbers from 0 the frames of so many tracks.
func NewInstants(tracks int) *Instants { return &Instants{tracks: make([]uint32, tracks)} }

// NewInstantsSince numbers from a number that is ahead of all that were given before, by the clock: for receivers that
// outlive the bridge and reject lower ones.
func NewInstantsSince(now time.Time, tracks int) *Instants {
	n := NewInstants(tracks)
	n.next = FirstNumber(now)
	return n
}

// Of gives the number and the capture time of a track's next frame, by the stamp in its header in milliseconds. Numbers
// of one track rise, also where stamps stand still or go back. A stamp that cannot be true is replaced by the time of
// arrival.
func (n *Instants) Of(track int, stamp uint64, now time.Time) (number uint32, capture time.Time) {
	at := instant{stamp: stamp}
	for _, kept := range n.kept {
		if kept.after > n.tracks[track] && kept.stamp == stamp {
			at = kept
		}
	}
	if at.after == 0 {
		at.after, at.capture = n.next+1, believed(stamp, now)
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

// believed is the time of a stamp in milliseconds, or that of its arrival where it cannot be true.
func believed(stamp uint64, now time.Time) time.Time {
	if claimed := time.UnixMilli(int64(stamp)); claimed.Sub(now).Abs() <= maxSkew {
		return claimed
	}
	return now
}
