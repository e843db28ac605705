package signalling

import (
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// vr2GatherOutbox writes to one peer what of signalling v1 VR2Gather's dialect has words for: offers and candidates. It owns the writing side of the websocket,
// and implements sfu.Outbox.
type vr2GatherOutbox struct {
	client *vr2GatherClient
	// written is closed when the writing goroutine has ended.
	written chan struct{}

	mu     sync.Mutex
	queue  []signal.Message
	notify chan struct{}
	// offer is the last one that was queued.
	offer   *sentOffer
	closing bool
	code    signal.Code
}

// sentOffer is what an answer is held against.
type sentOffer struct {
	Number    int
	Tracks    map[string]vr2gather.Track
	Publishes map[string]bool
	Tiles     int
}

func newVR2GatherOutbox(c *vr2GatherClient) *vr2GatherOutbox {
	o := &vr2GatherOutbox{client: c, written: make(chan struct{}), notify: make(chan struct{}, 1)}
	go func() {
		// The reader notices that the websocket is closed, and ends the session.
		defer c.server.limits.Guard.Recover(placeOutbox, func() { _ = c.conn.NetConn().Close() })
		o.run()
	}()
	return o
}

// Send implements sfu.Outbox. What peers would not understand is passed over. An answer that the room does not take is the end: the peer knows no other.
func (o *vr2GatherOutbox) Send(m signal.Message) bool {
	switch m := m.(type) {
	case *sfu.VR2GatherOffer:
		return o.add(m, &sentOffer{Number: m.Offer.Offer, Tracks: m.Tracks, Publishes: m.Publishes, Tiles: m.Tiles})
	case *signal.Candidate:
		return !o.keeps(m.Candidate) || o.add(m, nil)
	case *signal.Error:
		if m.ID == answerID {
			o.Close(m.Code, m.Message)
		}
	}
	return true
}

func (o *vr2GatherOutbox) add(m signal.Message, offer *sentOffer) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing {
		return true
	}
	if len(o.queue) >= o.client.server.limits.Backlog {
		return false
	}
	if offer != nil {
		o.offer = offer
	}
	o.queue = append(o.queue, m)
	o.wake()
	return true
}

// keeps tells whether a peer is told of a candidate: of those over UDP, since the peer dies of any that it cannot take, and as configured.
func (o *vr2GatherOutbox) keeps(candidate string) bool {
	fields := strings.Fields(candidate)
	const transport, address = 2, 4
	return len(fields) > address && strings.EqualFold(fields[transport], "udp") && strings.Contains(fields[address], o.client.server.config.Candidates)
}

// offered is the offer that an answer would be to, nil before the first.
func (o *vr2GatherOutbox) offered() *sentOffer {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.offer
}

// Close implements sfu.Outbox. It logs the reason.
func (o *vr2GatherOutbox) Close(code signal.Code, reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing {
		return
	}
	o.closing, o.code = true, code
	switch code {
	case "":
	case signal.CodeDraining:
		o.client.log.Info("VR2Gather peer's connection ends", zap.String("reason", reason))
	default:
		o.client.server.refused.Add(1)
		c := o.client
		c.server.log.Refused(time.Now(), c.remote, "VR2Gather peer refused", zap.String("dialect", "vr2gather"),
			zap.String("room", c.place.room), zap.Uint32("client", c.query.Client), zap.String("code", string(code)),
			zap.String("reason", reason))
	}
	if code == signal.CodeSlowReader {
		o.queue = nil
		time.AfterFunc(slowReaderGrace, func() { _ = o.client.conn.NetConn().Close() })
	}
	o.wake()
}

func (o *vr2GatherOutbox) ended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closing
}

func (o *vr2GatherOutbox) wake() {
	select {
	case o.notify <- struct{}{}:
	default:
	}
}

// take gives what waits, and whether it is the last.
func (o *vr2GatherOutbox) take() (messages []signal.Message, last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	messages, o.queue = o.queue, nil
	return messages, o.closing
}

// run writes until the outbox is closed or writing fails. A failure closes the websocket; after an orderly end its reader does.
func (o *vr2GatherOutbox) run() {
	defer close(o.written)
	conn, limits := o.client.conn, o.client.server.limits
	ping := time.NewTicker(limits.PingInterval)
	defer ping.Stop()
	for {
		select {
		case <-o.notify:
			messages, last := o.take()
			for _, m := range messages {
				if err := o.write(m); err != nil {
					o.client.log.Info("message not written", zap.Error(err))
					_ = conn.Close()
					return
				}
			}
			if last {
				o.writeClose()
				return
			}
		case <-ping.C:
			if conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(limits.WriteTimeout)) != nil {
				_ = conn.Close()
				return
			}
		}
	}
}

// write turns a message into the dialect's and writes it.
func (o *vr2GatherOutbox) write(m signal.Message) error {
	var out vr2gather.Message
	switch m := m.(type) {
	case *sfu.VR2GatherOffer:
		streams := make(map[string]string, len(m.Tracks))
		for mid, track := range m.Tracks {
			streams[mid] = track.StreamID(m.Tiles) + " " + track.ID()
		}
		sdp, err := description.ForVR2Gather(m.SDP, streams, o.keeps)
		if err != nil {
			return err
		}
		o.client.server.metrics.SignallingMessage("out", signal.TypeOffer)
		out = vr2gather.Message{Type: vr2gather.MessageOffer, Value: vr2gather.Description{Type: "offer", SDP: sdp}.Value()}
	case *signal.Candidate:
		o.client.server.metrics.SignallingMessage("out", signal.TypeCandidate)
		out = vr2gather.Message{Type: vr2gather.MessageCandidate, Value: m.Candidate}
	}
	text, err := out.Append(nil)
	if err != nil {
		return err
	}
	conn := o.client.conn
	if err := conn.SetWriteDeadline(time.Now().Add(o.client.server.limits.WriteTimeout)); err != nil {
		return err
	}
	return conn.WriteMessage(websocket.TextMessage, text)
}

// writeClose sends the websocket's close frame, whose reason is the code, and closes the sending half of the connection.
func (o *vr2GatherOutbox) writeClose() {
	o.mu.Lock()
	code := o.code
	o.mu.Unlock()
	conn := o.client.conn
	frame := websocket.FormatCloseMessage(closeStatus(code), string(code))
	_ = conn.WriteControl(websocket.CloseMessage, frame, time.Now().Add(slowReaderGrace))
	if half, ok := conn.NetConn().(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = conn.NetConn().SetReadDeadline(time.Now().Add(lingerTime))
}
