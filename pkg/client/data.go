package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/datamessage"
	"github.com/volsfu/volsfu/pkg/signal"
)

// ErrDataBacklog means that too many reliable data messages wait for the server's reply: datamessage.KeptMessages, or
// datamessage.KeptBytes.
var ErrDataBacklog = errors.New("too many data messages without a reply")

// Data is a data message to send.
type Data struct {
	// To names the recipients. An empty list stands for all other participants.
	To []string
	// Topic is a name by which the application distinguishes messages.
	Topic string
	// Lossy messages may be lost. Of the lossy messages of one topic, a receiver gets only messages newer than all
	// before.
	Lossy bool
	// Text or Binary is the payload, signal.MaxDataBytes at most, or signal.MaxLossyBytes.
	Text   string
	Binary []byte
}

// DataMessage is a received data message.
type DataMessage struct {
	// From is the sender, empty for the server's operator.
	From  string
	Topic string
	Lossy bool
	// Text or Binary is the payload.
	Text   string
	Binary []byte
	// Missed is the number of reliable messages before this one that are lost: the session was interrupted for longer
	// than the server keeps messages, or the program did not read the channel in time.
	Missed int64
}

// messageChannel is a data channel for copies of messages.
type messageChannel interface {
	Send(message []byte) bool
	SendTwice(message []byte)
}

// dataFlow are the data messages of a session in both directions. Its methods are safe for concurrent use.
type dataFlow struct {
	received chan DataMessage

	receiving sync.Mutex
	ended     bool
	receiver  *datamessage.Receiver
	missed    int64

	// sending is held while a message is numbered and written, so that the websocket has the order of the numbers. A
	// write lasts at most signalling.Times.Write. It is locked before mu.
	sending sync.Mutex

	// mu guards the fields below.
	mu     sync.Mutex
	sender datamessage.Sender
	conn   *signalling.Conn
	copies messageChannel
	// replies are the channels of callers that wait for the server's reply, by number.
	replies map[int64]chan error
}

func newDataFlow() *dataFlow {
	return &dataFlow{
		received: make(chan DataMessage, dataBacklog), receiver: datamessage.NewReceiver(),
		replies: make(map[int64]chan error),
	}
}

// Data returns the channel of received data messages. It is closed when the session ends.
func (s *Session) Data() <-chan DataMessage { return s.data.received }

// SendData sends a data message. A reliable message returns when the server has accepted the message. If the websocket
// breaks before, the session repeats the message after the resume. A lossy message returns at once, and may be lost
// without an error. A refusal is a *signal.Error: signal.CodeLimit for more messages than the server allows, and
// signal.CodeNotFound if a recipient is not in the room, in which case the others receive the message.
func (s *Session) SendData(ctx context.Context, d Data) error {
	reply, err := s.QueueData(d)
	if err != nil || reply == nil {
		return err
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ctx.Done():
		return s.Err()
	}
}

// QueueData is SendData without the wait for the server. Messages have the order of the calls. The returned channel
// gets the result of SendData, and is nil for a lossy message. After the end of the session it gets nothing.
func (s *Session) QueueData(d Data) (<-chan error, error) {
	m := &signal.Data{To: d.To, Topic: d.Topic, Lossy: d.Lossy, Text: d.Text, Binary: d.Binary}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return s.data.send(m)
}

// dataID is the prefix of the ids of data messages.
const dataID = "data-"

// send sends a message and returns the channel of the reply, nil for a lossy message.
func (f *dataFlow) send(m *signal.Data) (<-chan error, error) {
	f.sending.Lock()
	defer f.sending.Unlock()
	reply, err := f.number(m)
	if err != nil {
		return nil, err
	}
	conn, copies := f.ways()
	if m.Lossy {
		return nil, sendLossy(m, conn, copies)
	}
	if copies != nil && m.Size() <= signal.MaxCopyBytes {
		if text, err := signal.Encode(m); err == nil && len(text) <= signal.MaxCopyBytes {
			copies.SendTwice(text)
		}
	}
	// After a failure the websocket ends, and the message is repeated after the resume.
	conn.Write(m)
	return reply, nil
}

// number numbers a message and returns the channel of its reply, nil for a lossy message.
func (f *dataFlow) number(m *signal.Data) (<-chan error, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.Lossy {
		f.sender.Number(m)
		return nil, nil
	}
	if f.sender.Full(m.Size()) {
		return nil, fmt.Errorf("%w: at most %d messages and %d bytes", ErrDataBacklog, datamessage.KeptMessages,
			datamessage.KeptBytes)
	}
	f.sender.Number(m)
	m.ID = dataID + strconv.FormatInt(m.Seq, 10)
	reply := make(chan error, 1)
	f.replies[m.Seq] = reply
	return reply, nil
}

// ways returns the present websocket and the present message channel.
func (f *dataFlow) ways() (*signalling.Conn, messageChannel) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conn, f.copies
}

// sendLossy sends a lossy message over the message channel, or over the websocket if there is none or it is too slow.
func sendLossy(m *signal.Data, conn *signalling.Conn, copies messageChannel) error {
	if copies != nil {
		text, err := signal.Encode(m)
		if err != nil {
			return err
		}
		if copies.Send(text) {
			return nil
		}
	}
	return conn.Send(m)
}

// attach sets the message channel of a new peer connection.
func (f *dataFlow) attach(copies messageChannel) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.copies = copies
}

// resume continues on another websocket, and repeats the messages after the last that the server has received.
func (f *dataFlow) resume(conn *signalling.Conn, received int64) {
	f.sending.Lock()
	defer f.sending.Unlock()
	for _, m := range f.lacking(conn, received) {
		conn.Write(m)
	}
}

// lacking sets the websocket and returns the messages to repeat.
func (f *dataFlow) lacking(conn *signalling.Conn, received int64) []*signal.Data {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conn = conn
	f.delivered(received, nil)
	return slices.Clone(f.sender.After(received))
}

// delivered ends the wait for the replies to messages up to a number. err is the reply to the last of them; the other
// replies were lost with a websocket. The caller holds mu.
func (f *dataFlow) delivered(seq int64, err error) {
	f.sender.Delivered(seq)
	for waits, reply := range f.replies {
		switch {
		case waits > seq:
			continue
		case waits == seq:
			reply <- err
		default:
			reply <- nil
		}
		delete(f.replies, waits)
	}
}

// reply reports whether a message is the reply to a data message, and delivers it.
func (f *dataFlow) reply(m signal.Message) bool {
	text, ok := strings.CutPrefix(m.Head().ID, dataID)
	if !ok {
		return false
	}
	seq, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return false
	}
	var refused error
	if e, ok := m.(*signal.Error); ok {
		refused = e
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delivered(seq, refused)
	return true
}

// copied takes a message of the message channel.
func (f *dataFlow) copied(text []byte) {
	message, err := signal.DecodeFromServer(text)
	if err != nil {
		return
	}
	m, ok := message.(*signal.Data)
	if !ok {
		return
	}
	f.receiving.Lock()
	defer f.receiving.Unlock()
	if m.Lossy {
		f.lossy(m)
		return
	}
	for _, m := range f.receiver.Copied(m) {
		f.deliver(m)
	}
}

// ordered takes a message of the websocket.
func (f *dataFlow) ordered(m *signal.Data) {
	f.receiving.Lock()
	defer f.receiving.Unlock()
	if m.Lossy {
		f.lossy(m)
		return
	}
	ready, missed := f.receiver.Ordered(m)
	f.missed += missed
	for _, m := range ready {
		f.deliver(m)
	}
}

// lossy delivers a lossy message that is newer than all before. The caller holds the lock for receiving.
func (f *dataFlow) lossy(m *signal.Data) {
	if newer, err := f.receiver.Newer(m); newer && err == nil {
		f.deliver(m)
	}
}

// deliver passes a message to the program. The caller holds the lock for receiving.
func (f *dataFlow) deliver(m *signal.Data) {
	if f.ended {
		return
	}
	select {
	case f.received <- DataMessage{
		From: m.Participant, Topic: m.Topic, Lossy: m.Lossy, Text: m.Text, Binary: m.Binary, Missed: f.missed,
	}:
		f.missed = 0
	default:
		if !m.Lossy {
			f.missed++
		}
	}
}

// lastReceived returns the number of the last received reliable message.
func (f *dataFlow) lastReceived() *int64 {
	f.receiving.Lock()
	defer f.receiving.Unlock()
	last := f.receiver.Last()
	return &last
}

// forget clears the numbers of the lossy messages of a participant who has left.
func (f *dataFlow) forget(participant string) {
	f.receiving.Lock()
	defer f.receiving.Unlock()
	f.receiver.Forget(participant)
}

// end closes the channel that the program reads.
func (f *dataFlow) end() {
	f.receiving.Lock()
	defer f.receiving.Unlock()
	f.ended = true
	close(f.received)
}

// Data implements transport.Sink.
func (m *media) Data(label string, message []byte, _ time.Time) {
	if label == signal.MessageChannel {
		m.session.data.copied(message)
	}
}
