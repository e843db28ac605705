package signalling

import (
	"sync"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// outbox queues messages for one websocket. outbox implements sfu.Outbox and Queue. It is safe for concurrent use.
type outbox struct {
	*Writer
	metrics Metrics
	// welcome completes the reply to a join, nil on a server that runs alone.
	welcome *welcomer

	mu    sync.Mutex
	queue []signal.Message
	// poses has the queue index of the waiting pose of each object. A newer pose replaces the waiting pose.
	poses map[volumetric.PublicationRef]int
	// lossy has the queue index of the waiting lossy data message of each sender and topic. A newer message replaces
	// the waiting one.
	lossy map[dataTopic]int
	// assigned counts the slots that were assigned in messages to the client and are not acknowledged.
	assigned int
	closing  bool
	code     signal.Code
	reason   string
}

func newOutbox(conn *websocket.Conn, config *Config, metrics Metrics) *outbox {
	o := &outbox{
		Writer: NewWriter(conn, config), metrics: metrics, poses: make(map[volumetric.PublicationRef]int),
		lossy: make(map[dataTopic]int),
	}
	o.Start(o)
	return o
}

// Send implements sfu.Outbox.
func (o *outbox) Send(m signal.Message) bool {
	if joined, ok := m.(*signal.Joined); ok && o.welcome != nil {
		o.welcome.cluster.Welcome(joined, o.welcome.grants, o.welcome.epoch)
		o.welcome.enter(joined)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing {
		return true
	}
	if pose, ok := m.(*signal.Pose); ok && o.replace(pose) {
		return true
	}
	if data, ok := m.(*signal.Data); ok && data.Lossy {
		if at, waits := o.lossy[topicOf(data)]; waits {
			o.queue[at] = data
			return true
		}
	}
	if expendable(m) && len(o.queue) >= o.config.Backlog/2 {
		return true
	}
	if len(o.queue) >= o.config.Backlog {
		return false
	}
	switch m := m.(type) {
	case *signal.Pose:
		o.poses[objectOf(m)] = len(o.queue)
	case *signal.Published, *signal.Unpublished, *signal.ParticipantJoined, *signal.ParticipantLeft:
		// Later poses may belong to a new object with the same name.
		clear(o.poses)
	case *signal.Data:
		if m.Lossy {
			o.lossy[topicOf(m)] = len(o.queue)
		}
	case *signal.Assignments:
		o.assigned += len(m.Assignments)
	}
	o.queue = append(o.queue, m)
	o.Wake()
	return true
}

// expendable reports whether a client that reads slowly can do without a message.
func expendable(m signal.Message) bool {
	switch m := m.(type) {
	case *signal.FrameTimes:
		return true
	case *signal.Data:
		return m.Lossy
	}
	return false
}

// dataTopic names the lossy data messages of which only the newest counts.
type dataTopic struct{ participant, topic string }

func topicOf(m *signal.Data) dataTopic { return dataTopic{m.Participant, m.Topic} }

// replace replaces the waiting pose of the same object, if any. Without it, a client that reads nothing for two seconds
// would be disconnected because of outdated poses: 20 objects at 30 poses per second fill the backlog.
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

// acknowledged records the acknowledgement of a number of slots. acknowledged reports whether an assignment was still
// to be acknowledged.
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

// Close implements sfu.Outbox. If the client is too slow, its backlog is discarded.
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
		clear(o.lossy)
		o.Abort()
	}
	if code != "" {
		o.queue = append(o.queue, &signal.Closing{Code: code, Message: reason})
	}
	o.Wake()
}

// end ends the websocket without the message Closing. code is the reason in the close frame.
func (o *outbox) end(code signal.Code) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closing {
		o.closing, o.code = true, code
		o.Wake()
	}
}

// Take implements Queue.
func (o *outbox) Take() (messages []signal.Message, last bool, code signal.Code) {
	o.mu.Lock()
	defer o.mu.Unlock()
	messages, o.queue = o.queue, nil
	clear(o.poses)
	clear(o.lossy)
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

// NotWritten implements Queue. The reader notices that the websocket is closed and ends the session.
func (o *outbox) NotWritten(error) {}

// ended reports whether the outbox is closed. Queued messages may still be written.
func (o *outbox) ended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closing
}
