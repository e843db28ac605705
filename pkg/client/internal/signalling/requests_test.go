package signalling

import (
	"context"
	"errors"
	"testing"

	"github.com/volsfu/volsfu/pkg/signal"
)

// attempts are enough for select to choose the wrong one of two ready channels at least once.
const attempts = 100

// TestLastReply: a reply that has arrived counts even if the session and the wait have ended. Servers reply and then
// end the session.
func TestLastReply(t *testing.T) {
	ended, end := context.WithCancelCause(t.Context())
	kicked := &signal.Error{Code: signal.CodeKicked}
	end(kicked)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	reply := make(chan signal.Message, 1)
	for range attempts {
		reply <- &signal.OK{}
		if _, open, err := await(over, ended, reply); err != nil || !open {
			t.Fatalf("got %v, the reply was there", err)
		}
	}
	if _, _, err := await(t.Context(), ended, reply); !errors.Is(err, kicked) {
		t.Errorf("without a reply: got %v, want why the session has ended", err)
	}
	if _, _, err := await(over, t.Context(), reply); !errors.Is(err, context.Canceled) {
		t.Errorf("without a reply: got %v, want %v", err, context.Canceled)
	}
	close(reply)
	for range attempts {
		if _, open, err := await(over, ended, reply); err != nil || open {
			t.Fatalf("an abandoned wait: got %v, %v", open, err)
		}
	}
}

// TestRepliesWithoutRequests: second replies, and replies to requests that were not made or have ended, are ignored.
func TestRepliesWithoutRequests(t *testing.T) {
	r := NewRequests(context.Background())
	id, reply, _ := r.open()
	for range 3 {
		if !r.Reply(&signal.OK{Header: signal.Header{ID: id}}) {
			t.Error("a reply is not taken for one")
		}
	}
	if r.Reply(&signal.OK{Header: signal.Header{ID: "8"}}) || r.Reply(&signal.OK{}) {
		t.Error("a message is taken for the reply to a request that was not made")
	}
	if len(reply) != 1 {
		t.Errorf("%d replies wait, want 1", len(reply))
	}
	r.close(id)
	if r.Reply(&signal.OK{Header: signal.Header{ID: id}}) || len(r.pending) != 0 {
		t.Error("a request that has ended is kept")
	}
}

// TestAbandonedRequests: requests and the wait for another websocket end with the websocket.
func TestAbandonedRequests(t *testing.T) {
	r := NewRequests(context.Background())
	_, reply, _ := r.open()
	resumed := r.waitResumed()
	r.Continue(nil)
	for _, ended := range []func() bool{
		func() bool { _, open := <-reply; return !open },
		func() bool { _, open := <-resumed; return !open },
	} {
		if !ended() {
			t.Error("a wait goes on")
		}
	}
	if len(r.pending) != 0 {
		t.Errorf("%d requests are kept, want 0", len(r.pending))
	}
	select {
	case <-r.waitResumed():
		t.Error("the next wait ends before there is another websocket")
	default:
	}
}

// TestAMoveEndsTheWaitForAWebsocket: a request that was not sent is made again on the next server.
func TestAMoveEndsTheWaitForAWebsocket(t *testing.T) {
	r := NewRequests(context.Background())
	resumed := r.waitResumed()
	_, reply, _ := r.open()
	if made := r.Move(nil); made != 1 {
		t.Errorf("%d requests were made, expected 1", made)
	}
	select {
	case <-resumed:
	default:
		t.Error("the wait for another websocket goes on")
	}
	select {
	case <-reply:
		t.Error("the wait for a reply over the former websocket has ended")
	default:
	}
}
