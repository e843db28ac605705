package egress

import (
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/trace"
	"github.com/volsfu/volsfu/internal/forward/track"
)

// Event is a change of a slot, or the loss of frames on a slot.
type Event struct {
	Slot  *Slot
	Track *track.Track
	// Switched is set if the track began to feed the slot, feeds the slot again after a pause, or remains the source
	// although another track was selected meanwhile. Delay is the time from the request to the first packet, 0 if there
	// was nothing to wait for.
	Switched bool
	Delay    time.Duration
	// OffFrames are the frames before the first frame of the track that the slot did not carry because the slot was
	// off.
	OffFrames FrameRange
	// DroppedFrames counts frames of the track that the slot does not receive completely, for the reason Dropped.
	// EndedFrames counts frames that were ended for that reason after they had begun: the receiver has received a part
	// of them.
	DroppedFrames int
	EndedFrames   int
	Dropped       DropReason
}

// FrameTimes are the time stamps of one frame of payload v1 on its way through the server to one slot.
type FrameTimes = trace.Times[*Slot, *track.Track]

// FrameRange is a range of consecutive frames of one tile. Numbers are frame numbers of payload v1, which wrap around
// at 32 bits.
type FrameRange struct {
	First, Count uint32
}

// DropReason is the reason why a slot does not receive a frame completely.
type DropReason uint8

const (
	// DroppedBudget: the frame waited in the receiver's pacer for longer than Config.QueueBudget, because the receiver
	// is sent more than its path carries.
	DroppedBudget DropReason = iota + 1
	// DroppedLate: the writer reached the frame later than Config.MaxLag, because processor time was short.
	DroppedLate
	// DroppedOverrun: the track's cache removed packets of the frame before the writer reached them.
	DroppedOverrun
	// DroppedExpired: the frame had begun, and the rest waited in the receiver's pacer beyond the receiver's deadline.
	DroppedExpired
	// DroppedIncomplete: packets of the frame were lost on the way from the publisher, and the parity that the receiver
	// is sent does not replace them. Or the active track left the frame to the selected track, which did not begin.
	DroppedIncomplete
	// DroppedBlocked: this host's send buffer had no room for the packets to the receiver, or the receiver had not
	// consented to receive (Peer.Blocked).
	DroppedBlocked
)

// String returns the name of the reason in metrics.
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

// dropReasons maps counters to reasons.
var dropReasons = map[counters.Counter]DropReason{
	counters.DroppedBudget: DroppedBudget, counters.DroppedLate: DroppedLate, counters.DroppedOverrun: DroppedOverrun,
	counters.DroppedExpired: DroppedExpired, counters.DroppedIncomplete: DroppedIncomplete,
	counters.DroppedBlocked: DroppedBlocked,
}

// maxEvents bounds the events that wait to be taken. A receiver has hundreds of slots. If the events are not taken, the
// oldest are lost.
const maxEvents = 4096

// eventList holds events until they are taken. eventList is safe for any goroutine.
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
