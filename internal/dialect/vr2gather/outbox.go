package vr2gather

import (
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// outbox queues the messages for one peer that exist in the VR2Gather dialect: offers and candidates. outbox implements
// sfu.Outbox and signalling.Queue. It is safe for concurrent use.
type outbox struct {
	*signalling.Writer
	client *client

	mu    sync.Mutex
	queue []signal.Message
	// offer is the last queued offer.
	offer   *sentOffer
	closing bool
	code    signal.Code
}

// sentOffer is an offer with which an answer is compared.
type sentOffer struct {
	number int
	// published has, by mid, the names of the lines on which the peer publishes.
	published map[string]string
}

func newOutbox(c *client) *outbox {
	o := &outbox{Writer: signalling.NewWriter(c.conn, &c.server.limits), client: c}
	o.Start(o)
	return o
}

// Send implements sfu.Outbox. Messages that do not exist in the dialect are ignored. If the room rejects an answer,
// Send ends the connection, because the peer cannot send another answer.
func (o *outbox) Send(m signal.Message) bool {
	switch m := m.(type) {
	case *sfu.NamedOffer:
		return o.add(m, &sentOffer{number: m.Offer.Offer, published: publishedLines(&o.client.query, m.Media)})
	case *signal.Candidate:
		return !o.keeps(m.Candidate) || o.add(m, nil)
	case *signal.Error:
		if m.ID == answerID {
			o.Close(m.Code, m.Message)
		}
	}
	return true
}

func (o *outbox) add(m signal.Message, offer *sentOffer) bool {
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
	o.Wake()
	return true
}

// keeps reports whether a candidate is sent to the peer: it must use UDP, because a peer crashes on other candidates,
// and match the configuration.
func (o *outbox) keeps(candidate string) bool {
	fields := strings.Fields(candidate)
	const transport, address = 2, 4
	return len(fields) > address && strings.EqualFold(fields[transport], "udp") &&
		strings.Contains(fields[address], o.client.server.config.Candidates)
}

// offered returns the offer that an answer refers to, nil before the first offer.
func (o *outbox) offered() *sentOffer {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.offer
}

// Close implements sfu.Outbox. It logs the reason.
func (o *outbox) Close(code signal.Code, reason string) {
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
		o.Abort()
	}
	o.Wake()
}

func (o *outbox) ended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closing
}

// Take implements signalling.Queue.
func (o *outbox) Take() (messages []signal.Message, last bool, code signal.Code) {
	o.mu.Lock()
	defer o.mu.Unlock()
	messages, o.queue = o.queue, nil
	return messages, o.closing, o.code
}

// NotWritten implements signalling.Queue. The reader notices that the websocket is closed and ends the session.
func (o *outbox) NotWritten(err error) { o.client.log.Info("message not written", zap.Error(err)) }

// Encode implements signalling.Queue. It encodes a message in the dialect.
func (o *outbox) Encode(m signal.Message) ([]byte, error) {
	var out vr2gather.Message
	switch m := m.(type) {
	case *sfu.NamedOffer:
		sdp, err := toPeer(m.SDP, o.streams(m), o.keeps)
		if err != nil {
			return nil, err
		}
		o.client.server.metrics.SignallingMessage("out", signal.TypeOffer)
		value := vr2gather.Description{Type: "offer", SDP: sdp}.Value()
		out = vr2gather.Message{Type: vr2gather.MessageOffer, Value: value}
	case *signal.Candidate:
		o.client.server.metrics.SignallingMessage("out", signal.TypeCandidate)
		out = vr2gather.Message{Type: vr2gather.MessageCandidate, Value: m.Candidate}
	}
	return out.Append(nil)
}

// streams returns, by mid, the names of the lines of an offer in session descriptions.
func (o *outbox) streams(m *sfu.NamedOffer) map[string]string {
	streams := publishedLines(&o.client.query, m.Media)
	for mid, name := range m.Names {
		streams[mid] = streamOf(&o.client.query, trackOf(name))
	}
	return streams
}

// publishedLines returns, by mid, the names of the lines of an offer on which a peer publishes.
func publishedLines(q *vr2gather.Query, media []signal.Media) map[string]string {
	kinds := make(map[string]volumetric.Kind)
	for _, publication := range publicationsOf(*q) {
		kinds[publication.Name] = publication.Kind
	}
	lines := make(map[string]string)
	for _, m := range media {
		if kind, ok := kinds[m.Publication]; ok && m.Role == signal.RolePublish {
			lines[m.MID] = streamOf(q, vr2gather.Track{Kind: kind, Client: q.Client, Tile: m.Tile, Quality: *m.Quality})
		}
	}
	return lines
}

// streamOf returns the name of a line in session descriptions: "STREAM TRACK" of the attribute msid.
func streamOf(q *vr2gather.Query, t vr2gather.Track) string {
	return t.StreamID(q.Tiles) + " " + t.ID()
}
