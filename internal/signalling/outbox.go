package signalling

import (
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// outbox queues messages for one websocket and owns its writing side. It implements sfu.Outbox.
type outbox struct {
	conn    *websocket.Conn
	config  Config
	metrics Metrics
	// written is closed when the writing goroutine has ended.
	written chan struct{}

	mu    sync.Mutex
	queue []signal.Message
	// poses are where in the queue the pose of an object waits, whose place a newer one takes.
	poses map[volumetric.PublicationRef]int
	// assigned counts the slots that the client was told about and has not acknowledged.
	assigned int
	notify   chan struct{}
	closing  bool
	code     signal.Code
	reason   string
}

func newOutbox(conn *websocket.Conn, config Config, metrics Metrics) *outbox {
	o := &outbox{
		conn: conn, config: config, metrics: metrics, written: make(chan struct{}),
		poses: make(map[volumetric.PublicationRef]int), notify: make(chan struct{}, 1),
	}
	go func() {
		// The reader notices that the websocket is closed, and ends the session.
		defer config.Guard.Recover(placeOutbox, func() { _ = conn.NetConn().Close() })
		o.run()
	}()
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
	o.wake()
	return true
}

// replace puts a pose in the place of the one of the same object that waits, if any: with 20 objects at 30 poses per second, a client that reads nothing for two
// seconds would be disconnected for what is of no use any more.
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

// acknowledged takes an acknowledgement of that many slots, and tells whether any of what the client was told about was still to be acknowledged.
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
		// Whatever write is under way fails soon, and so does the next.
		time.AfterFunc(slowReaderGrace, func() { _ = o.conn.NetConn().Close() })
	}
	if code != "" {
		o.queue = append(o.queue, &signal.Closing{Code: code, Message: reason})
	}
	o.wake()
}

// slowReaderGrace is how long the last write to a client that does not read may go on: time for a reason to get into the socket's buffer.
const slowReaderGrace = 100 * time.Millisecond

func (o *outbox) wake() {
	select {
	case o.notify <- struct{}{}:
	default:
	}
}

// take gives what waits, and whether it is the last.
func (o *outbox) take() (messages []signal.Message, last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	messages, o.queue = o.queue, nil
	clear(o.poses)
	return messages, o.closing
}

// ended tells whether the outbox is closed, though what is queued may still be written.
func (o *outbox) ended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closing
}

// run writes until the outbox is closed or writing fails. A failure closes the websocket; after an orderly end its reader does.
func (o *outbox) run() {
	defer close(o.written)
	ping := time.NewTicker(o.config.PingInterval)
	defer ping.Stop()
	for {
		select {
		case <-o.notify:
			messages, last := o.take()
			for _, m := range messages {
				if o.write(m) != nil {
					_ = o.conn.Close()
					return
				}
			}
			if last {
				o.writeClose()
				return
			}
		case <-ping.C:
			if o.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(o.config.WriteTimeout)) != nil {
				_ = o.conn.Close()
				return
			}
		}
	}
}

func (o *outbox) write(m signal.Message) error {
	data, err := signal.Encode(m)
	if err != nil {
		return err
	}
	if err := o.conn.SetWriteDeadline(time.Now().Add(o.config.WriteTimeout)); err != nil {
		return err
	}
	o.metrics.SignallingMessage("out", m.Head().Type)
	return o.conn.WriteMessage(websocket.TextMessage, data)
}

// closeStatus is the status that a websocket is closed with for a reason.
func closeStatus(code signal.Code) int {
	switch code {
	case "":
		return websocket.CloseNormalClosure
	case signal.CodeDraining:
		return websocket.CloseGoingAway
	case signal.CodeTooLarge:
		return websocket.CloseMessageTooBig
	default:
		return websocket.ClosePolicyViolation
	}
}

// lingerTime is how long a client may take to close its side after the server has closed its own: some round trips of any network.
const lingerTime = time.Second

// writeClose sends the websocket's own close frame, closes the sending half of the connection, and lets the reader wait for the client's half no
// longer than lingerTime. The frame's reason is the code, which fits the 123 bytes that RFC 6455 allows.
func (o *outbox) writeClose() {
	o.mu.Lock()
	code := o.code
	o.mu.Unlock()
	frame := websocket.FormatCloseMessage(closeStatus(code), string(code))
	_ = o.conn.WriteControl(websocket.CloseMessage, frame, time.Now().Add(slowReaderGrace))
	if half, ok := o.conn.NetConn().(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = o.conn.NetConn().SetReadDeadline(time.Now().Add(lingerTime))
}
