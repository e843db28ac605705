// Package messages sends and receives the data messages of a session: over the websocket, which has the order of the
// messages, and as copies over a data channel. After an interruption, messages without a reply are repeated.
//
// A Flow has no goroutine. Its methods are safe for concurrent use.
package messages

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/datamessage"
	"github.com/volsfu/volsfu/pkg/signal"
)

// ErrBacklog means that too many reliable messages wait for the server's reply.
var ErrBacklog = errors.New("too many data messages without a reply")

// Channel is a data channel for copies of messages.
type Channel interface {
	Send(message []byte) bool
	SendTwice(message []byte)
}

// Message is a received data message.
type Message struct {
	From   string
	Topic  string
	Lossy  bool
	Text   string
	Binary []byte
	// Missed is the number of reliable messages before this one that are lost.
	Missed int64
}

// Program receives the messages.
type Program interface {
	// Deliver passes a message to the program without waiting, and reports whether the program takes the message.
	Deliver(Message) bool
}

// Flow are the data messages of a session in both directions. Its methods are safe for concurrent use.
type Flow struct {
	program Program

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
	copies Channel
	// replies are the channels of callers that wait for the server's reply, by number.
	replies map[int64]chan error
}

// NewFlow returns the messages of a session that has not joined.
func NewFlow(program Program) *Flow {
	return &Flow{program: program, receiver: datamessage.NewReceiver(), replies: make(map[int64]chan error)}
}

// dataID is the prefix of the ids of data messages.
const dataID = "data-"

// Send sends a message and returns the channel of the reply, nil for a lossy message.
func (f *Flow) Send(m *signal.Data) (<-chan error, error) {
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
func (f *Flow) number(m *signal.Data) (<-chan error, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.Lossy {
		f.sender.Number(m)
		return nil, nil
	}
	if f.sender.Full(m.Size()) {
		return nil, fmt.Errorf("%w: at most %d messages and %d bytes", ErrBacklog, datamessage.KeptMessages,
			datamessage.KeptBytes)
	}
	f.sender.Number(m)
	m.ID = dataID + strconv.FormatInt(m.Seq, 10)
	reply := make(chan error, 1)
	f.replies[m.Seq] = reply
	return reply, nil
}

// ways returns the present websocket and the present message channel.
func (f *Flow) ways() (*signalling.Conn, Channel) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conn, f.copies
}

// sendLossy sends a lossy message over the message channel, or over the websocket if there is none or it is too slow.
func sendLossy(m *signal.Data, conn *signalling.Conn, copies Channel) error {
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

// Attach sets the message channel of a new peer connection.
func (f *Flow) Attach(copies Channel) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.copies = copies
}

// Resume continues on another websocket, and repeats the messages after the last that the server has received.
func (f *Flow) Resume(conn *signalling.Conn, received int64) {
	f.sending.Lock()
	defer f.sending.Unlock()
	for _, m := range f.lacking(conn, received) {
		conn.Write(m)
	}
}

// lacking sets the websocket and returns the messages to repeat.
func (f *Flow) lacking(conn *signalling.Conn, received int64) []*signal.Data {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conn = conn
	f.delivered(received, nil)
	return slices.Clone(f.sender.After(received))
}

// delivered ends the wait for the replies to messages up to a number. err is the reply to the last of them; the other
// replies were lost with a websocket. The caller holds mu.
func (f *Flow) delivered(seq int64, err error) {
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

// Reply reports whether a message is the reply to a data message, and delivers it.
func (f *Flow) Reply(m signal.Message) bool {
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

// Copied takes a message of the message channel.
func (f *Flow) Copied(text []byte) {
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
		f.pass(m)
	}
}

// Ordered takes a message of the websocket.
func (f *Flow) Ordered(m *signal.Data) {
	f.receiving.Lock()
	defer f.receiving.Unlock()
	if m.Lossy {
		f.lossy(m)
		return
	}
	ready, missed := f.receiver.Ordered(m)
	f.missed += missed
	for _, m := range ready {
		f.pass(m)
	}
}

// lossy delivers a lossy message that is newer than all before. The caller holds the lock for receiving.
func (f *Flow) lossy(m *signal.Data) {
	if newer, err := f.receiver.Newer(m); newer && err == nil {
		f.pass(m)
	}
}

// pass passes a message to the program. The caller holds the lock for receiving.
func (f *Flow) pass(m *signal.Data) {
	if f.ended {
		return
	}
	message := Message{
		From: m.Participant, Topic: m.Topic, Lossy: m.Lossy, Text: m.Text, Binary: m.Binary, Missed: f.missed,
	}
	switch {
	case f.program.Deliver(message):
		f.missed = 0
	case !m.Lossy:
		f.missed++
	}
}

// LastReceived returns the number of the last received reliable message.
func (f *Flow) LastReceived() *int64 {
	f.receiving.Lock()
	defer f.receiving.Unlock()
	last := f.receiver.Last()
	return &last
}

// Forget clears the numbers of the lossy messages of a participant who has left.
func (f *Flow) Forget(participant string) {
	f.receiving.Lock()
	defer f.receiving.Unlock()
	f.receiver.Forget(participant)
}

// ForgetAll clears the numbers of the lossy messages of all participants. After an interruption of the session, any of
// them may have left and returned, and count from 1 again.
func (f *Flow) ForgetAll() {
	f.receiving.Lock()
	defer f.receiving.Unlock()
	f.receiver.ForgetAll()
}

// End ends the delivery to the program. No message is delivered after End has returned.
func (f *Flow) End() {
	f.receiving.Lock()
	defer f.receiving.Unlock()
	f.ended = true
}
