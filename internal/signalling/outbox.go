package signalling

import (
	"sync"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// outbox queues messages for one websocket. It implements sfu.Outbox, and Queue.
type outbox struct {
	*Writer
	metrics Metrics

	mu    sync.Mutex
	queue []signal.Message
	// poses are where in the queue the pose of an object waits, whose place a newer one takes.
	poses map[volumetric.PublicationRef]int
	// assigned counts the slots that the client was told about and has not acknowledged.
	assigned int
	closing  bool
	code     signal.Code
	reason   string
}

func newOutbox(conn *websocket.Conn, config *Config, metrics Metrics) *outbox {
	o := &outbox{
		Writer: NewWriter(conn, config), metrics: metrics, poses: make(map[volumetric.PublicationRef]int),
	}
	o.Start(o)
	return o
}

// Send implements sfu.Outbox.
func (o *outbox) Send(m signal.Message) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing {
		return true
	}
	if pose, ok := m.(*signal.Pose); ok && o.replace(pose) {
		return true
	}
	if _, ok := m.(*signal.FrameTimes); ok && len(o.queue) >= o.config.Backlog/2 {
		// A client that reads slowly can do without.
		return true
	}
	if len(o.queue) >= o.config.Backlog {
		return false
	}
	switch m := m.(type) {
	case *signal.Pose:
		o.poses[objectOf(m)] = len(o.queue)
	case *signal.Published, *signal.Unpublished, *signal.ParticipantJoined, *signal.ParticipantLeft:
		// The poses that follow may be those of another object with the name of one before.
		clear(o.poses)
	case *signal.Assignments:
		o.assigned += len(m.Assignments)
	}
	o.queue = append(o.queue, m)
	o.Wake()
	return true
}

// replace puts a pose in the place of the one of the same object that waits, if any: with 20 objects at 30 poses per
// second, a client that reads nothing for two seconds would be disconnected for what is of no use any more.
func (o *outbox) replace(m *signal.Pose) bool {
	at, waits := o.poses[objectOf(m)]
	if !waits {
		return false
	}
	if before := o.queue[at].(*signal.Pose); len(m.Boxes) == 0 {
		m.Boxes = before.Boxes
	}
	o.queue[at] = m
	return true
}

// acknowledged takes an acknowledgement of that many slots, and tells whether any of what the client was told about
// was still to be acknowledged.
func (o *outbox) acknowledged(slots int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	owed := o.assigned > 0
	o.assigned = max(0, o.assigned-max(1, slots))
	return owed
}

func objectOf(m *signal.Pose) volumetric.PublicationRef {
	return volumetric.PublicationRef{Participant: m.Participant, Publication: m.Publication}
}

// Close implements sfu.Outbox. A client that does not read is not waited for: its backlog is thrown away.
func (o *outbox) Close(code signal.Code, reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing {
		return
	}
	o.closing, o.code, o.reason = true, code, reason
	if code == signal.CodeSlowReader {
		o.queue = nil
		clear(o.poses)
		o.Abort()
	}
	if code != "" {
		o.queue = append(o.queue, &signal.Closing{Code: code, Message: reason})
	}
	o.Wake()
}

// Take implements Queue.
func (o *outbox) Take() (messages []signal.Message, last bool, code signal.Code) {
	o.mu.Lock()
	defer o.mu.Unlock()
	messages, o.queue = o.queue, nil
	clear(o.poses)
	return messages, o.closing, o.code
}

// Encode implements Queue.
func (o *outbox) Encode(m signal.Message) ([]byte, error) {
	data, err := signal.Encode(m)
	if err == nil {
		o.metrics.SignallingMessage("out", m.Head().Type)
	}
	return data, err
}

// NotWritten implements Queue. The reader notices that the websocket is closed, and ends the session.
func (o *outbox) NotWritten(error) {}

// ended reports whether the outbox is closed, though what is queued may still be written.
func (o *outbox) ended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closing
}
