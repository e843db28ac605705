package client

import (
	"context"
	"errors"
	"testing"

	"github.com/volsfu/volsfu/pkg/signal"
)

// attempts are enough for a choice at random among what is ready to be wrong once.
const attempts = 100

// TestLastReply: a reply that is there is heard, though the session and the wait for it have ended since: servers reply, and end the session.
func TestLastReply(t *testing.T) {
	s := newRig(t, Config{}).session
	s.cancel(&signal.Error{Code: signal.CodeKicked})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	reply := make(chan signal.Message, 1)
	for range attempts {
		reply <- &signal.OK{}
		if _, open, err := awaitReply(over, s.ctx, reply); err != nil || !open {
			t.Fatalf("got %v, the reply was there", err)
		}
	}
	if _, _, err := awaitReply(t.Context(), s.ctx, reply); !errors.Is(err, s.Err()) {
		t.Errorf("without a reply: got %v, want why the session has ended", err)
	}
	living := newRig(t, Config{}).session
	if _, _, err := awaitReply(over, living.ctx, reply); !errors.Is(err, context.Canceled) {
		t.Errorf("without a reply: got %v, want %v", err, context.Canceled)
	}
	close(reply)
	for range attempts {
		if _, open, err := awaitReply(over, s.ctx, reply); err != nil || open {
			t.Fatalf("an abandoned wait: got %v, %v", open, err)
		}
	}
}

// TestLastMessage: what a websocket has brought by the end of the wait for it is taken.
func TestLastMessage(t *testing.T) {
	l := &link{messages: make(chan signal.Message, 1)}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range attempts {
		l.messages <- &signal.Joined{}
		if _, open, err := l.receive(over); err != nil || !open {
			t.Fatalf("got %v, the message was there", err)
		}
	}
	if _, _, err := l.receive(over); !errors.Is(err, context.Canceled) {
		t.Errorf("without a message: got %v, want %v", err, context.Canceled)
	}
	close(l.messages)
	for range attempts {
		if _, open, err := l.receive(over); err != nil || open {
			t.Fatalf("a websocket that has ended: got %v, %v", open, err)
		}
	}
}
