package egress

import (
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/track"
)

// Event is something that happened to a slot.
type Event struct {
	Slot  *Slot
	Track *track.Track
	// Switched says that the track began to feed the slot, feeds it again after a pause, or feeds it still although
	// another was selected meanwhile. Delay is from the request to the first packet, 0 where there was nothing to wait
	// for.
	Switched bool
	Delay    time.Duration
	// OffFrames are those before the first of the track that the slot did not carry because it was off.
	OffFrames FrameRange
	// DroppedFrames counts frames of the track that the slot will not get whole, for the reason Dropped. EndedFrames
	// had begun and were ended for that reason: the receiver has got a part of them.
	DroppedFrames int
	EndedFrames   int
	Dropped       DropReason
}

// FrameRange is consecutive frames of one tile. Numbers are those of payload v1, which go on at 0 after the last of 32
// bits.
type FrameRange struct {
	First, Count uint32
}

// DropReason is why a slot does not get frames whole.
type DropReason uint8

const (
	// DroppedBudget: they waited for longer than Config.QueueBudget to be let through to the receiver, which is sent
	// more than its path takes.
	DroppedBudget DropReason = iota + 1
	// DroppedLate: the writer came to them later than Config.MaxLag, for want of processor time.
	DroppedLate
	// DroppedOverrun: they left the track's cache before the writer came to them, or the publisher.
	DroppedOverrun
	// DroppedExpired: they had begun, and what was left of them waited to be let through to the receiver for longer
	// than its deadline.
	DroppedExpired
	// DroppedIncomplete: packets of them did not come from the publisher and were given up, and what parity the
	// receiver is sent does not make up for them.
	DroppedIncomplete
	// DroppedBlocked: packets to the receiver found no room in this host's send buffer, or the receiver did not consent
	// to being sent anything (Peer.Blocked).
	DroppedBlocked
)

// String names the reason as the metrics do.
func (d DropReason) String() string {
	switch d {
	case DroppedBudget:
		return "budget"
	case DroppedLate:
		return "late"
	case DroppedOverrun:
		return "overrun"
	case DroppedExpired:
		return "expired"
	case DroppedIncomplete:
		return "incomplete"
	case DroppedBlocked:
		return "blocked"
	}
	return "none"
}

// dropReasons are the reasons by what is counted.
var dropReasons = map[counters.Counter]DropReason{
	counters.DroppedBudget: DroppedBudget, counters.DroppedLate: DroppedLate, counters.DroppedOverrun: DroppedOverrun,
	counters.DroppedExpired: DroppedExpired, counters.DroppedIncomplete: DroppedIncomplete,
	counters.DroppedBlocked: DroppedBlocked,
}

// maxEvents bounds what waits to be taken. A receiver has hundreds of slots; one that takes no events for so long loses
// the oldest ones.
const maxEvents = 4096

// eventList keeps what happened until it is taken.
type eventList struct {
	mu     sync.Mutex
	events []Event
	notify chan struct{}
}

func (l *eventList) add(e Event) {
	l.mu.Lock()
	if len(l.events) == maxEvents {
		l.events = slices.Delete(l.events, 0, 1)
	}
	l.events = append(l.events, e)
	l.mu.Unlock()
	select {
	case l.notify <- struct{}{}:
	default:
	}
}

func (l *eventList) take(buf []Event) []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	buf = append(buf, l.events...)
	clear(l.events)
	l.events = l.events[:0]
	return buf
}
