package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
)

// refuse replies to a join with an error.
func (s *played) refuse(code signal.Code, retryAfterMS int) {
	if join := s.next(); join != nil {
		s.say(&signal.Error{
			Header: signal.Header{ID: join.Head().ID}, Code: code, Message: "no", RetryAfterMS: retryAfterMS,
		})
		s.listen()
	}
}

// TestARefusalOfOneServerIsNotTheEnd: the first server is alive, and only its websocket has broken. The second server
// has other keys.
func TestARefusalOfOneServerIsNotTheEnd(t *testing.T) {
	t.Parallel()
	second := playing(t, func(s *played) { s.refuse(signal.CodeUnauthorized, 0) })
	first := playing(t, func(s *played) {
		s.admitWith(func(joined *signal.Joined) { joined.Nodes = addressed(second) })
	}, nil, staying)
	s := joinPlayed(t, first, signalling.DefaultTimes)
	expectEvent[Interrupted](t, s)
	expectEvent[Resumed](t, s)
}

// TestRefusalsOfAllServersAreTheEnd of a session.
func TestRefusalsOfAllServersAreTheEnd(t *testing.T) {
	t.Parallel()
	refuse := func(s *played) { s.refuse(signal.CodeResume, 0) }
	second := playing(t, refuse)
	first := playing(t, func(s *played) {
		s.admitWith(func(joined *signal.Joined) { joined.Nodes = addressed(second) })
	}, refuse)
	s := joinPlayed(t, first, signalling.DefaultTimes)
	select {
	case <-s.Done():
	case <-time.After(longEnough):
		t.Fatal("the session has not ended")
	}
	var refused *signal.Error
	if err := s.Err(); !errors.Is(err, ErrLost) || !errors.As(err, &refused) || refused.Code != signal.CodeResume {
		t.Errorf("ended with %v", err)
	}
}

// TestTheClientWaitsAsLongAsServersAsk, although it would try again after 0.1 s.
func TestTheClientWaitsAsLongAsServersAsk(t *testing.T) {
	t.Parallel()
	const wait = 700 * time.Millisecond
	refused, back := make(chan time.Time, 1), make(chan time.Time, 1)
	url := playing(t, func(s *played) { s.admit(time.Minute) }, func(s *played) {
		refused <- time.Now()
		s.refuse(signal.CodeLimit, int(wait.Milliseconds()))
	}, func(s *played) {
		back <- time.Now()
		staying(s)
	})
	s := joinPlayed(t, url, signalling.DefaultTimes)
	expectEvent[Resumed](t, s)
	if waited := (<-back).Sub(<-refused); waited < wait {
		t.Errorf("the client came back after %v, expected at least %v", waited, wait)
	}
}

// TestTheAudienceIsCounted, and counted again on another server.
func TestTheAudienceIsCounted(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	url := playing(t, func(s *played) {
		s.admit(time.Minute)
		s.say(&signal.Audience{Count: 400})
		<-goOn
	}, staying)
	s := joinPlayed(t, url, signalling.DefaultTimes)
	if e := expectEvent[Audience](t, s); e.Count != 400 || s.Audience() != 400 {
		t.Errorf("%d in the event, %d in the session, expected 400", e.Count, s.Audience())
	}
	close(goOn)
	expectEvent[Resumed](t, s)
	if s.Audience() != 0 {
		t.Errorf("%d in the audience of a server that has named none", s.Audience())
	}
}

// TestTheFormerServerMayEndFirst: the session has moved, and the first server closes the websocket before the reply of
// the second arrives.
func TestTheFormerServerMayEndFirst(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	second := playing(t, func(s *played) {
		join := s.next().(*signal.Join)
		<-ended
		s.say(&signal.Joined{
			Header: signal.Header{ID: join.ID}, Version: signal.Version, Room: join.Room, Identity: join.Identity,
			Session: "session", Resumed: true, Resume: signal.ResumeGrant{Secret: "second", GraceMS: 60000},
		})
		for m := s.next(); m != nil; m = s.next() {
			s.say(&signal.OK{Header: signal.Header{ID: m.Head().ID}})
		}
	})
	begin := make(chan struct{})
	first := playing(t, func(s *played) {
		s.admit(time.Minute)
		<-begin
		s.say(&signal.Moved{URL: second, Ticket: "ticket", DeadlineMS: 60000, MakeBeforeBreak: true})
		s.say(&signal.Closing{Code: signal.CodeReplaced, Message: "the session continued on another server"})
		_ = s.conn.Close()
		close(ended)
	}, nil)
	s := joinPlayed(t, first, signalling.DefaultTimes)
	s.path.media().connect()
	close(begin)
	ctx, cancel := context.WithTimeout(t.Context(), longEnough)
	defer cancel()
	for err := publishBody(ctx, s); err != nil; err = publishBody(ctx, s) {
		if !errors.Is(err, ErrInterrupted) {
			t.Fatal(err)
		}
	}
	for len(s.events) > 0 {
		switch e := (<-s.events).(type) {
		case Interrupted, Resumed, Closing:
			t.Errorf("the program sees %#v", e)
		}
	}
}
