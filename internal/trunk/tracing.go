package trunk

import (
	"time"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

const (
	// hopsInterval is the interval at which the times of frames are read. The lanes hand them over twice per second.
	hopsInterval = 100 * time.Millisecond
	// maxQueuedHops bounds the messages about hops that wait. The oldest are dropped.
	maxQueuedHops = 128
)

// hopsRate limits the messages about hops to another node: 6,400 frames per second, three times the frames of one
// publisher whose times are passed on.
var hopsRate = ratelimit.Rate{PerSecond: 200, Burst: 100}

// tracing sends the other node the hops of the frames of which it wants the times.
type tracing struct {
	catalog *catalog
	origin  *origin
	lanes   *lanes
	probing *probing
	// on is set while the lanes trace frames. read is the time at which the times of frames were last read.
	on   bool
	read time.Time
	rate ratelimit.Bucket
	// queue are the messages that wait for the rate or for SCTP.
	queue []*hops
	times []egress.FrameTimes
}

// step reads the times of frames that have left, and sends the messages that wait.
func (t *tracing) step(now time.Time) {
	wanted := len(t.origin.traced) > 0
	if !wanted && !t.on && len(t.queue) == 0 {
		return
	}
	for _, lane := range t.lanes.open() {
		lane.receiver.TraceFrames(wanted)
	}
	t.on = wanted
	if wanted && now.Sub(t.read) >= hopsInterval {
		t.read = now
		t.collect()
	}
	for len(t.queue) > 0 && t.probing.hasRoom() && t.rate.Take(now) {
		t.probing.send(probe{Hops: t.queue[0]})
		t.queue = t.queue[1:]
	}
}

// collect queues the hops of the frames since the last call.
func (t *tracing) collect() {
	frames := make(map[publication][]hop)
	for _, lane := range t.lanes.open() {
		t.times = lane.receiver.TakeFrameTimes(t.times[:0])
		if len(t.times) == 0 {
			continue
		}
		places := t.places(lane)
		for i := range t.times {
			f := &t.times[i]
			place, known := places[f.Slot]
			if !known || t.catalog.publications[place.publication].tracks[place.track] != f.Track {
				// The stream carries another track since.
				continue
			}
			p := place.publication
			frames[p] = append(frames[p], hop{place.track, f.Frame, f.LastIn, f.LastOut})
		}
	}
	clear(t.times)
	for p, passed := range frames {
		t.add(hopsOf(p, t.catalog.publications[p].depth(), passed)...)
	}
}

// place is a track of a publication.
type place struct {
	publication publication
	track       int
}

// places returns what the slots of a lane carry, of the publications whose frames are traced.
func (t *tracing) places(l *lane) map[*egress.Slot]place {
	places := make(map[*egress.Slot]place)
	for p := range t.origin.traced {
		pub, taken := t.catalog.publications[p], t.origin.takes[p]
		if pub == nil || taken == nil {
			continue
		}
		for track, s := range taken.streams {
			if slot := l.slots[s]; slot != nil && track < len(pub.tracks) {
				places[slot] = place{p, track}
			}
		}
	}
	return places
}

// add queues messages about hops.
func (t *tracing) add(m ...*hops) {
	t.queue = append(t.queue, m...)
	if excess := len(t.queue) - maxQueuedHops; excess > 0 {
		t.queue = t.queue[excess:]
	}
}

// depth returns the number of nodes before this one on the way of a publication.
func (pub *local) depth() int {
	if pub.relay == nil {
		return 0
	}
	return len(pub.relay.mirror.feed.path)
}
