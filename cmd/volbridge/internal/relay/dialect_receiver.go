package relay

import (
	"maps"
	"sync"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/bridge"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// receivedQueue is the number of received frames that may wait for the connector, as many as in the other direction.
const receivedQueue = 64

// dialectReceiver receives the media of a session in VR2Gather's dialect from one goroutine per track, and queues
// complete frames for the goroutine that serves the connector. The receiver belongs to one session.
type dialectReceiver struct {
	tally  *bridge.Tally
	wanted bool
	frames chan *bridge.Received
	sounds chan *bridge.Received
	// opened signals that a track was opened.
	opened chan struct{}

	mu        sync.Mutex
	reception *bridge.Reception
	// tiles has the number of tiles of each client, as far as their tracks were opened.
	tiles map[uint32]int
}

func newDialectReceiver(wanted bool, tally *bridge.Tally) *dialectReceiver {
	return &dialectReceiver{
		tally: tally, wanted: wanted, frames: make(chan *bridge.Received, receivedQueue),
		sounds: make(chan *bridge.Received, receivedQueue),
		opened: make(chan struct{}, 1), reception: bridge.NewReception(tally), tiles: make(map[uint32]int),
	}
}

// Opened implements dialect.Sink.
func (l *dialectReceiver) Opened(track vr2gather.Track) {
	if track.Kind == volumetric.KindAudio {
		return
	}
	l.mu.Lock()
	l.tiles[track.Client] = max(l.tiles[track.Client], track.Tile+1)
	l.mu.Unlock()
	select {
	case l.opened <- struct{}{}:
	default:
	}
}

// Packet implements dialect.Sink. The server sends audio and initial tiles even if the connector does not want them.
func (l *dialectReceiver) Packet(kind volumetric.Kind, payload []byte, now time.Time) {
	if !l.wanted {
		return
	}
	l.mu.Lock()
	received := l.reception.Push(kind, payload, now)
	l.mu.Unlock()
	if received == nil {
		return
	}
	if len(received.Data) < vr2gather.FrameHeaderSize {
		l.tally.Add(bridge.DropHeader)
		return
	}
	queue := l.frames
	if kind == volumetric.KindAudio {
		queue = l.sounds
	}
	select {
	case queue <- received:
	default:
		l.tally.Add(bridge.DropOverrun)
	}
}

// clients returns the number of tiles of each client.
func (l *dialectReceiver) clients() map[uint32]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.tiles)
}
