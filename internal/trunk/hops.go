package trunk

import (
	"fmt"
	"math"
	"time"

	"github.com/volsfu/volsfu/internal/forward/trace"
	"github.com/volsfu/volsfu/pkg/frametimes/clock"
)

const (
	// maxHops is the number of frames in one message about hops: with names of 100 bytes in 1,200 bytes, which are one
	// packet. A lost message is not repeated.
	maxHops = 32
	// maxHopTime bounds the times within one message, maxClock times since 1970 and, by half of it, offsets of clocks.
	maxHopTime = time.Minute
	maxClock   = 1 << 62
)

// hops has the times of frames in one of the nodes that pass a publication on. Hops are messages of the probe stream,
// for nodes that ask for them in their demand (take.Trace).
type hops struct {
	publication
	// Depth is the number of nodes before that node, 0 for the home.
	Depth int `json:"depth"`
	// Base is a time by the clock of the node that sends the message, in nanoseconds since 1970.
	Base int64 `json:"base"`
	hopClock
	// Frames has for each frame the index of its track, its number, the nanoseconds from Base until the node had read
	// the last packet, and the nanoseconds from there until the node passed the last packet to the socket.
	Frames [][4]int64 `json:"frames"`
}

// hopClock is the conversion of the times of a node to the clock of another: the offset added to the times, the maximum
// error for any path, and the maximum error if both directions of each path have the same delay, in nanoseconds.
type hopClock struct {
	Offset      int64 `json:"offset,omitempty"`
	Bound       int64 `json:"bound,omitempty"`
	Uncertainty int64 `json:"uncertainty,omitempty"`
}

func (m *hops) check() error {
	if err := m.publication.check(nil); err != nil {
		return err
	}
	switch {
	case m.Depth < 0 || m.Depth >= maxPath:
		return fmt.Errorf("%w: a hop after %d nodes, expected 0 to %d", ErrMessage, m.Depth, maxPath-1)
	case len(m.Frames) > maxHops:
		return fmt.Errorf("%w: hops of %d frames, the limit is %d", ErrMessage, len(m.Frames), maxHops)
	case m.Base < 0 || m.Base > maxClock:
		return fmt.Errorf("%w: the time %d of hops, expected 0 to %d", ErrMessage, m.Base, int64(maxClock))
	case m.Offset < -maxClock/2 || m.Offset > maxClock/2 || m.Bound < 0 || m.Bound > maxClock/2 ||
		m.Uncertainty < 0 || m.Uncertainty > maxClock/2:
		return fmt.Errorf("%w: a clock with offset %d, bound %d and uncertainty %d", ErrMessage, m.Offset, m.Bound,
			m.Uncertainty)
	}
	for _, f := range m.Frames {
		if f[0] < 0 || f[0] >= maxTracks || f[1] < 0 || f[1] > math.MaxUint32 || f[2] < 0 ||
			f[2] > int64(maxHopTime) || f[3] < 0 || f[3] > int64(maxHopTime) {
			return fmt.Errorf("%w: hop %v", ErrMessage, f)
		}
	}
	return nil
}

// convert converts the times to the clock of this node. The estimate is that of the clock of the node that has sent the
// message.
func (m *hops) convert(e clock.Estimate) {
	m.Base -= int64(e.Offset)
	m.Offset -= int64(e.Offset)
	m.Bound += int64(e.Bound)
	m.Uncertainty += int64(e.Uncertainty)
}

// hop is the time of a frame in this node. In and Out are in nanoseconds since 1970.
type hop struct {
	track   int
	frame   uint32
	in, out int64
}

// hopsOf returns the messages about frames of a publication.
func hopsOf(p publication, depth int, frames []hop) (list []*hops) {
	for len(frames) > 0 {
		part := frames[:min(len(frames), maxHops)]
		frames = frames[len(part):]
		m := &hops{publication: p, Depth: depth, Base: part[0].in, Frames: make([][4]int64, 0, len(part))}
		for _, f := range part {
			m.Base = min(m.Base, f.in)
		}
		for _, f := range part {
			after, held := f.in-m.Base, max(f.out-f.in, 0)
			if max(after, held) <= int64(maxHopTime) {
				m.Frames = append(m.Frames, [4]int64{int64(f.track), int64(f.frame), after, held})
			}
		}
		list = append(list, m)
	}
	return list
}

const (
	// trailTime is the time for which the hops of a frame are awaited: frames are reported up to a second after they
	// have left.
	trailTime = 2 * time.Second
	// maxTrails bounds the frames of one publication whose hops are awaited.
	maxTrails = 8192
)

// trails join the hops of the frames of a publication.
type trails struct {
	frames map[trailKey]*trail
	// order are the frames in the order of their first hops, also those that are complete.
	order []trailKey
}

// trailKey identifies a frame, and the time of its first hop.
type trailKey struct {
	track int
	frame uint32
}

// trail has the known hops of a frame that passes several nodes.
type trail struct {
	began time.Time
	// known has a bit for each known hop, by depth.
	known uint32
	times trace.Relay
	clock hopClock
}

// add adds hops whose times are by the clock of this node. nodes is the number of nodes that a frame passes before this
// one. add returns the frames of which all hops are known, and the clock of their times, that with the largest error.
func (t *trails) add(m *hops, nodes int, now time.Time) (frames []trace.Relay, c hopClock) {
	t.expire(now)
	for _, f := range m.Frames {
		key := trailKey{int(f[0]), uint32(f[1])}
		at := t.at(key, now)
		if bit := uint32(1) << m.Depth; at.known&bit == 0 {
			at.known |= bit
			at.times.Held += time.Duration(f[3])
			if m.Depth == 0 {
				at.times.LastIn, at.clock = m.Base+f[2], m.hopClock
			}
		}
		if at.known != 1<<nodes-1 {
			continue
		}
		delete(t.frames, key)
		frames = append(frames, at.times)
		if at.clock.Bound >= c.Bound {
			c = at.clock
		}
	}
	return frames, c
}

// at returns the trail of a frame.
func (t *trails) at(key trailKey, now time.Time) *trail {
	if at := t.frames[key]; at != nil {
		return at
	}
	if t.frames == nil {
		t.frames = make(map[trailKey]*trail)
	}
	if len(t.order) == maxTrails {
		t.drop()
	}
	at := &trail{began: now, times: trace.Relay{Track: key.track, Frame: key.frame}}
	t.frames[key] = at
	t.order = append(t.order, key)
	return at
}

// expire removes the frames whose hops are not awaited any longer.
func (t *trails) expire(now time.Time) {
	for len(t.order) > 0 {
		if at := t.frames[t.order[0]]; at != nil && now.Sub(at.began) < trailTime {
			return
		}
		t.drop()
	}
	t.order = nil
}

// drop removes the oldest frame.
func (t *trails) drop() {
	delete(t.frames, t.order[0])
	t.order = t.order[1:]
}
