package messages

import (
	"errors"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/datamessage"
	"github.com/volsfu/volsfu/pkg/signal"
)

// channel is a message channel that keeps messages.
type channel struct {
	twice, once []string
	open        bool
}

func (c *channel) Send(m []byte) bool {
	if c.open {
		c.once = append(c.once, string(m))
	}
	return c.open
}

func (c *channel) SendTwice(m []byte) { c.twice = append(c.twice, string(m)) }

// backlog is the number of messages that a program that does not read takes.
const backlog = 100

// program is a channel of received messages.
type program chan Message

func (p program) Deliver(m Message) bool {
	select {
	case p <- m:
		return true
	default:
		return false
	}
}

// newFlow returns a flow, and the channel of its received messages.
func newFlow() (*Flow, program) {
	received := make(program, backlog)
	return NewFlow(received), received
}

// TestNumbering numbers messages until the backlog is full, and expects that replies free the backlog.
func TestNumbering(t *testing.T) {
	f, _ := newFlow()
	var replies []<-chan error
	for range datamessage.KeptMessages {
		reply, err := f.number(&signal.Data{Text: "x"})
		if err != nil {
			t.Fatal(err)
		}
		replies = append(replies, reply)
	}
	if _, err := f.number(&signal.Data{}); !errors.Is(err, ErrBacklog) {
		t.Errorf("one message too many: got %v, expected ErrBacklog", err)
	}
	refused := &signal.Error{Header: signal.Header{ID: "data-2"}, Code: signal.CodeLimit}
	if !f.Reply(refused) || f.Reply(&signal.OK{Header: signal.Header{ID: "7"}}) ||
		f.Reply(&signal.OK{Header: signal.Header{ID: "data-x"}}) {
		t.Error("replies were taken for others")
	}
	if err := <-replies[0]; err != nil {
		t.Errorf("message 1, whose reply was lost: got %v, expected no error", err)
	}
	var got *signal.Error
	if err := <-replies[1]; !errors.As(err, &got) || got.Code != signal.CodeLimit {
		t.Errorf("message 2: got %v, expected limit", err)
	}
	m := &signal.Data{}
	if _, err := f.number(m); err != nil || m.Seq != datamessage.KeptMessages+1 {
		t.Errorf("after replies: got number %d, %v", m.Seq, err)
	}
}

// TestLossyMessagesUseTheMessageChannel sends lossy messages over an open channel.
func TestLossyMessagesUseTheMessageChannel(t *testing.T) {
	c := &channel{open: true}
	if err := sendLossy(&signal.Data{Seq: 1, Lossy: true, Text: "x"}, nil, c); err != nil {
		t.Fatal(err)
	}
	if len(c.once) != 1 || !strings.Contains(c.once[0], `"lossy":true`) {
		t.Errorf("sent %q", c.once)
	}
}

// TestMissedMessages lets the program read nothing.
func TestMissedMessages(t *testing.T) {
	f, received := newFlow()
	for seq := int64(1); seq <= backlog+5; seq++ {
		f.Ordered(&signal.Data{Seq: seq})
	}
	for range backlog {
		if m := <-received; m.Missed != 0 {
			t.Fatalf("%d messages are missed, expected none", m.Missed)
		}
	}
	f.Ordered(&signal.Data{Seq: backlog + 10})
	if m := <-received; m.Missed != 9 {
		t.Errorf("%d messages are missed, expected 5 that were not read and 4 of an interruption", m.Missed)
	}
}

// TestNoDeliveryAfterEnd sends the next message after End, over each way.
func TestNoDeliveryAfterEnd(t *testing.T) {
	for name, send := range map[string]func(f *Flow){
		"websocket":            func(f *Flow) { f.Ordered(&signal.Data{Seq: 2}) },
		"message channel":      func(f *Flow) { f.Copied([]byte(`{"type":"data","seq":2}`)) },
		"lossy by websocket":   func(f *Flow) { f.Ordered(&signal.Data{Seq: 2, Lossy: true}) },
		"lossy by the channel": func(f *Flow) { f.Copied([]byte(`{"type":"data","seq":2,"lossy":true}`)) },
	} {
		t.Run(name, func(t *testing.T) {
			open, received := newFlow()
			open.Ordered(&signal.Data{Seq: 1})
			send(open)
			if n := len(received); n != 2 {
				t.Errorf("%d messages before End, expected 2", n)
			}
			ended, received := newFlow()
			ended.Ordered(&signal.Data{Seq: 1})
			ended.End()
			send(ended)
			if n := len(received); n != 1 {
				t.Errorf("%d messages were delivered, expected only the one before End", n)
			}
		})
	}
}

// FuzzMessageChannel passes texts of a message channel.
func FuzzMessageChannel(f *testing.F) {
	f.Add([]byte(`{"type":"data","seq":1,"participant":"ada","text":"hello"}`))
	f.Add([]byte(`{"type":"data","seq":9007199254740991,"lossy":true,"binary":"AAEC"}`))
	f.Add([]byte(`{"type":"data","seq":-1}`))
	f.Add([]byte(`{"type":"closing"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		flow, received := newFlow()
		for range 3 {
			flow.Copied(text)
		}
		if n := len(received); n > 3 {
			t.Errorf("%d messages were delivered", n)
		}
	})
}
