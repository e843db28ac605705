package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// failover are the transcripts that this client shares with the web client. Times are in milliseconds.
type failover struct {
	Silence []struct {
		Name  string `json:"name"`
		Steps []struct {
			RTT      int64  `json:"rtt"`
			Returned bool   `json:"returned"`
			At       int64  `json:"at"`
			Received int64  `json:"received"`
			Expected bool   `json:"expected"`
			Several  bool   `json:"several"`
			Verdict  string `json:"verdict"`
		} `json:"steps"`
	} `json:"silence"`
	Rounds []struct {
		Name     string `json:"name"`
		Servers  int    `json:"servers"`
		Attempts []struct {
			Code         signal.Code `json:"code"`
			RetryAfterMS int         `json:"retry_after_ms"`
		} `json:"attempts"`
		Ended bool  `json:"ended"`
		Wait  int64 `json:"wait_ms"`
	} `json:"rounds"`
	Attempts []struct {
		RTT   int64 `json:"rtt_ms"`
		Limit int64 `json:"limit_ms"`
	} `json:"attempts"`
}

func readFailover(t *testing.T) (f failover) {
	t.Helper()
	text, err := os.ReadFile("testdata/failover.json")
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil || len(f.Silence) == 0 || len(f.Rounds) == 0 || len(f.Attempts) == 0 {
		t.Fatalf("transcripts %+v, %v", f, err)
	}
	return f
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func TestSilence(t *testing.T) {
	t.Parallel()
	names := map[verdict]string{verdictNone: "none", verdictAsk: "ask", verdictLeave: "leave"}
	start := time.Unix(1_795_188_600, 0)
	for _, test := range readFailover(t).Silence {
		t.Run(test.Name, func(t *testing.T) {
			t.Parallel()
			var s silence
			for i, step := range test.Steps {
				switch {
				case step.RTT > 0:
					s.measured(milliseconds(step.RTT))
					continue
				case step.Returned:
					s.returned()
					continue
				}
				now, received := start.Add(milliseconds(step.At)), start.Add(milliseconds(step.Received))
				if got := names[s.step(now, received, step.Expected, step.Several)]; got != step.Verdict {
					t.Errorf("step %d: verdict %s, expected %s", i, got, step.Verdict)
				}
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	f := readFailover(t)
	for _, test := range f.Rounds {
		t.Run(test.Name, func(t *testing.T) {
			t.Parallel()
			round, ended := refusals{several: test.Servers > 1}, false
			for _, a := range test.Attempts {
				err := errors.New("unreachable")
				if a.Code != "" {
					err = fmt.Errorf("join: %w", &signal.Error{Code: a.Code, RetryAfterMS: a.RetryAfterMS})
				}
				ended = ended || round.add(refusal(err))
			}
			if ended = ended || round.all(); ended != test.Ended || round.wait != milliseconds(test.Wait) {
				t.Errorf("ended %v, wait %v, expected %v and %d ms", ended, round.wait, test.Ended, test.Wait)
			}
		})
	}
	for _, a := range f.Attempts {
		if got := attemptTime(milliseconds(a.RTT)); got != milliseconds(a.Limit) {
			t.Errorf("round trip of %d ms: limit %v, expected %d ms", a.RTT, got, a.Limit)
		}
	}
}

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
	if err := s.Err(); !errors.Is(err, ErrLost) || refusal(err).Code != signal.CodeResume {
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

// TestChoicesOfEndedPublicationsMakeRoom for others. Choices for publications that exist stay.
func TestChoicesOfEndedPublicationsMakeRoom(t *testing.T) {
	t.Parallel()
	var r requested
	ref := func(i int) volumetric.PublicationRef {
		return volumetric.PublicationRef{Participant: "bob", Publication: fmt.Sprint(i)}
	}
	first := func(other volumetric.PublicationRef) bool { return other == ref(0) || other == ref(signal.MaxChoices) }
	for i := range signal.MaxChoices + 1 {
		r.choose([]signal.Choice{{PublicationRef: ref(i), Quality: signal.Only(0)}}, first)
	}
	messages := r.messages(func(string) bool { return true })
	choices := messages[0].(*signal.SetQuality).Choices
	if len(choices) != 2 || !first(choices[0].PublicationRef) || !first(choices[1].PublicationRef) {
		t.Errorf("%d choices are stored, expected those of the two publications that exist", len(choices))
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
	s.media().connect()
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
