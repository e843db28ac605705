package sfu

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/volsfu/volsfu/pkg/datamessage"
	"github.com/volsfu/volsfu/pkg/signal"
)

const (
	// deliveryRate and deliveryBurst limit the data messages that all participants of a room receive together, per
	// second and at once. A delivery takes the room's goroutine some 5 µs with its copies, so the limit is a tenth of a
	// core. In a room of 100, two participants can use the rate.
	deliveryRate, deliveryBurst = 20_000, 40_000
	// dataBurst is the burst of a participant's data messages and bytes in seconds of their rates.
	dataBurst = 2
	// noAnswerRetryMS is the time after which a request about a participant whose home does not answer may succeed: the
	// session continues on another node within a second or two.
	noAnswerRetryMS = 2000
)

// dataFlow is the state of the data messages of one participant.
type dataFlow struct {
	// received orders the messages of the client, sent numbers and keeps the messages to the client.
	received *datamessage.Receiver
	sent     *datamessage.Sender
	// lossy is the number of the participant's last lossy message.
	lossy int64
	// messages and bytes limit the messages of the client.
	messages, bytes *rate.Limiter
}

func newDataFlow(config *Config) dataFlow {
	return dataFlow{
		received: datamessage.NewReceiver(), sent: new(datamessage.Sender),
		messages: rate.NewLimiter(rate.Limit(config.DataRate), max(1, int(dataBurst*config.DataRate))),
		bytes:    rate.NewLimiter(rate.Limit(config.DataByteRate), dataBurst*config.DataByteRate),
	}
}

// dataLosses counts data messages that were not delivered.
type dataLosses struct{ limit, sender, invalid, queue atomic.Uint64 }

// DataLosses has numbers of data messages of other nodes that were not delivered, by cause.
type DataLosses struct {
	// Limit counts deliveries above the limit of the room, Sender messages of participants that the room does not have,
	// Invalid messages with an invalid field, and Queue lossy messages that found too many events waiting.
	Limit, Sender, Invalid, Queue uint64
}

// DataLosses returns the numbers of data messages of other nodes that were not delivered.
func (n *Node) DataLosses() DataLosses {
	return DataLosses{
		Limit: n.losses.limit.Load(), Sender: n.losses.sender.Load(), Invalid: n.losses.invalid.Load(),
		Queue: n.losses.queue.Load(),
	}
}

// newDeliveries limits the data messages that a room's participants receive.
func newDeliveries() *rate.Limiter { return rate.NewLimiter(deliveryRate, deliveryBurst) }

// dataCopied carries a data message from the message channel of a connection.
type dataCopied struct {
	*connection
	message *signal.Data
}

// DataCopied implements peer.Owner.
func (c *connection) DataCopied(m *signal.Data) { c.room.post(dataCopied{c, m}) }

// apply implements request.
func (q dataCopied) apply(r *Room) {
	if !q.present() {
		return
	}
	if q.message.Lossy {
		r.lossyRequested(q.owner, q.message)
		return
	}
	r.span.stateChanged(q.owner)
	for _, m := range q.owner.data.received.Copied(q.message) {
		q.owner.reply(m.ID, r.forwardData(q.owner, m))
	}
}

// data handles a data message from the websocket. A message that came over the message channel before is answered only
// then.
func (q messageRequest) data(r *Room, m *signal.Data) {
	p := q.participant
	if m.Lossy {
		r.lossyRequested(p, m)
		return
	}
	// The client repeats the messages that the server has not received, so missed messages are those that the client
	// has given up.
	ready, _ := p.data.received.Ordered(m)
	for _, m := range ready {
		p.reply(m.ID, r.forwardData(p, m))
	}
}

// lossyRequested handles a lossy data message. A message that is older than another of its topic is dropped.
func (r *Room) lossyRequested(p *participant, m *signal.Data) {
	// The server sets the sender of messages. All messages of a client have one sender.
	m.Participant = ""
	newer, err := p.data.received.Newer(m)
	switch {
	case err != nil:
		p.reply(m.ID, refuse(signal.CodeLimit, "the limit is %d topics of lossy messages", signal.MaxTopics))
	case newer:
		p.reply(m.ID, r.forwardData(p, m))
	default:
		p.reply(m.ID, nil)
	}
}

// forwardData forwards a data message to its recipients. If some of the named recipients are not in the room, the
// others receive the message, and the error names the first who does not.
func (r *Room) forwardData(p *participant, m *signal.Data) *signal.Error {
	config := &r.node.config
	switch {
	case !p.grants.Data:
		return refuse(signal.CodeForbidden, "the participant has no permission to send data messages")
	case !p.data.messages.AllowN(r.now, 1):
		return refuse(signal.CodeLimit, "the limit is %g data messages per second and %d at once (rooms.data_rate)",
			config.DataRate, p.data.messages.Burst())
	case !p.data.bytes.AllowN(r.now, m.Size()):
		return refuse(signal.CodeLimit,
			"the limit is %d bytes of data messages per second and %d at once (rooms.data_byte_rate)",
			config.DataByteRate, p.data.bytes.Burst())
	}
	recipients, missing := r.recipients(p, m.To)
	if refused := r.deliver(p.Identity, recipients, m); refused != nil {
		return refused
	}
	return missing
}

// deliver sends a message of the named sender to recipients. The sender is empty for the operator.
func (r *Room) deliver(sender string, recipients []*participant, m *signal.Data) *signal.Error {
	if !r.deliveries.AllowN(r.now, len(recipients)+r.span.recipients(m.To)) {
		return refuse(signal.CodeLimit, "the limit of this room is %d deliveries of data messages per second",
			deliveryRate)
	}
	seq := m.Seq
	if m.Lossy {
		seq = r.nextLossy(sender)
	}
	r.fanOut(sender, recipients, m, seq)
	r.span.sent(sender, m, seq)
	return nil
}

// fanOut records a message of the named sender and sends it to recipients. seq is the number of a lossy message.
func (r *Room) fanOut(sender string, recipients []*participant, m *signal.Data, seq int64) {
	if len(m.To) == 0 {
		r.recorder.current.Data(r.now, &signal.Data{
			Participant: sender, Topic: m.Topic, Lossy: m.Lossy, Text: m.Text, Binary: m.Binary,
		})
	}
	for _, recipient := range recipients {
		if !recipient.profile.TakesData {
			continue
		}
		recipient.receiveData(&signal.Data{
			Seq: seq, Participant: sender, Topic: m.Topic, Lossy: m.Lossy, Text: m.Text, Binary: m.Binary,
		})
	}
}

// noAnswer returns the error of a request about a participant whose home does not answer.
func noAnswer(identity string) *signal.Error {
	refused := refuse(signal.CodeInternal, "the server of participant %q does not answer", identity)
	refused.RetryAfterMS = noAnswerRetryMS
	return refused
}

// receiveData sends a data message to the client. A reliable message goes over the websocket, and is copied to the
// message channel if it fits in a packet. A lossy message goes over the message channel, or over the websocket if the
// channel is not open or too slow.
func (p *participant) receiveData(m *signal.Data) {
	copies := p.connection.Messages
	if m.Lossy {
		if copies != nil {
			if text, err := signal.Encode(m); err == nil && copies.Send(text) {
				return
			}
		}
		p.send(m)
		return
	}
	p.data.sent.Number(m)
	p.room.span.stateChanged(p)
	if copies != nil && m.Size() <= signal.MaxCopyBytes {
		signal.Share(m)
		if text, err := signal.Encode(m); err == nil && len(text) <= signal.MaxCopyBytes {
			copies.SendTwice(text)
		}
	}
	p.send(m)
}

// repeatData repeats the reliable messages after a number to a client that has resumed.
func (p *participant) repeatData(received *int64) {
	if received == nil {
		return
	}
	for _, m := range p.data.sent.After(*received) {
		p.send(m)
	}
}

// checkData checks the limits of data messages in the configuration.
func (c *Config) checkData() error {
	if !(c.DataRate > 0) || c.DataByteRate < signal.MaxDataBytes {
		return fmt.Errorf("%w: data_rate is %g and data_byte_rate is %d: expected over 0, and %d or more", ErrConfig,
			c.DataRate, c.DataByteRate, signal.MaxDataBytes)
	}
	return nil
}
