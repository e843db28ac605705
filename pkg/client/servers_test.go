package client

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/client/internal/failover"
	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// unreachable is an address at which nothing listens.
const unreachable = "ws://127.0.0.1:1"

// addressed returns the addresses of servers as a list of nodes.
func addressed(addresses ...string) []signal.NodeAddress {
	var nodes []signal.NodeAddress
	for _, address := range addresses {
		nodes = append(nodes, signal.NodeAddress{URL: address})
	}
	return nodes
}

// moved replies to a join.
func moved(join signal.Message, url string) *signal.Moved {
	return &signal.Moved{Header: signal.Header{ID: join.Head().ID}, URL: url, Ticket: "ticket"}
}

// TestAJoinFollowsToAnotherServer also checks that a server that cannot be reached is not the end.
func TestAJoinFollowsToAnotherServer(t *testing.T) {
	t.Parallel()
	joins := make(chan *signal.Join, 2)
	admitting := func(s *played) {
		joins <- s.admit(time.Minute)
		s.listen()
	}
	home := playing(t, admitting)
	entry := playing(t, func(s *played) { s.say(moved(s.next(), home)) })
	joinPlayed(t, entry, signalling.DefaultTimes)
	if join := <-joins; !join.Moves || join.Ticket != "ticket" || join.Identity != "ada" {
		t.Errorf("joined with %+v", join)
	}
	entry = playing(t, func(s *played) { s.say(moved(s.next(), unreachable)) }, admitting)
	joinPlayed(t, entry, signalling.DefaultTimes)
	if join := <-joins; join.Ticket != "" {
		t.Errorf("joined with the ticket %q of another server", join.Ticket)
	}
}

// TestAJoinWaitsForItsServers: the first server does not know yet that the other one has failed.
func TestAJoinWaitsForItsServers(t *testing.T) {
	t.Parallel()
	away := func(s *played) { s.say(moved(s.next(), unreachable)) }
	entry := playing(t, away, away, away, away, func(s *played) {
		s.admit(time.Minute)
		s.listen()
	})
	began := time.Now()
	joinPlayed(t, entry, signalling.DefaultTimes)
	if took := time.Since(began); took < 15*failover.FirstRetry {
		t.Errorf("five attempts took %v, expected at least %v", took, 15*failover.FirstRetry)
	}
}

// TestAResumeIsRepeatedAsItWas: the second server sends the client to a third one, which has no connection to it.
func TestAResumeIsRepeatedAsItWas(t *testing.T) {
	t.Parallel()
	resumes := make(chan *signal.Join, 1)
	third := playing(t, func(s *played) {
		resumes <- s.admit(time.Minute)
		s.listen()
	})
	second := playing(t, func(s *played) { s.say(moved(s.next(), third)) })
	end := make(chan struct{})
	first := playing(t, func(s *played) {
		s.admitWith(func(joined *signal.Joined) { joined.Nodes = addressed(second) })
		<-end
	}, nil)
	s := joinPlayed(t, first, signalling.DefaultTimes)
	s.path.media().connect()
	close(end)
	expectEvent[Resumed](t, s)
	if r := (<-resumes).Resume; r.Secret != "ticket" || !r.NewConnection {
		t.Errorf("resumed with %+v", r)
	}
}

// TestLateChoicesAreRepeated resumes on a server that has the state of the session, but perhaps not the latest.
func TestLateChoicesAreRepeated(t *testing.T) {
	t.Parallel()
	received := make(chan signal.Message, 100)
	second := playing(t, func(s *played) {
		s.admitWith(func(*signal.Joined) {})
		for m := s.next(); m != nil; m = s.next() {
			received <- m
		}
	})
	end := make(chan struct{})
	first := playing(t, func(s *played) {
		s.admitWith(func(joined *signal.Joined) { joined.Nodes = addressed(second) })
		for answered := 0; answered < 3; {
			m := s.next()
			if m == nil {
				return
			}
			if m.Head().ID != "" {
				s.say(&signal.OK{Header: signal.Header{ID: m.Head().ID}})
				answered++
			}
		}
		<-end
	}, nil)
	s := joinPlayed(t, first, signalling.DefaultTimes)
	ctx, cancel := context.WithTimeout(t.Context(), longEnough)
	defer cancel()
	ref := volumetric.PublicationRef{Participant: "bob", Publication: "hat"}
	_, err := s.Publish(ctx, described("body", volumetric.MIMEVolumetric, 1, 1))
	if err == nil {
		err = s.SetQuality(ctx, signal.Choice{PublicationRef: ref, Quality: signal.Only(3)})
	}
	if err == nil {
		err = s.Mute(ctx, "", "body", true)
	}
	if err != nil {
		t.Fatal(err)
	}
	close(end)
	expectEvent[Resumed](t, s)
	for choices, muted := false, false; !choices || !muted; {
		select {
		case m := <-received:
			switch m := m.(type) {
			case *signal.SetQuality:
				choices = len(m.Choices) == 1 && m.Choices[0].PublicationRef == ref
			case *signal.Mute:
				muted = m.Publication == "body" && m.Muted
			case *signal.Publish:
				t.Errorf("the client repeats %+v", m)
			}
		case <-ctx.Done():
			t.Fatalf("choices are repeated: %t, muting: %t", choices, muted)
		}
	}
}

// TestJoinsThatMoveForeverEnd follows a server that sends the client to itself.
func TestJoinsThatMoveForeverEnd(t *testing.T) {
	t.Parallel()
	var entry string
	known := make(chan struct{})
	entry = playing(t, func(s *played) {
		<-known
		s.say(moved(s.next(), entry))
	})
	close(known)
	ctx, cancel := context.WithTimeout(t.Context(), longEnough)
	defer cancel()
	if s, err := Join(ctx, Config{URL: entry, Room: "room", Identity: "ada"}); err == nil || ctx.Err() != nil {
		t.Errorf("joined %v, %v", s, err)
	}
}

// admitWith accepts the client's join or resume with other servers, and returns it.
func (s *played) admitWith(change func(*signal.Joined)) *signal.Join {
	join, ok := s.next().(*signal.Join)
	if !ok {
		return &signal.Join{}
	}
	joined := &signal.Joined{
		Header: signal.Header{ID: join.ID}, Version: signal.Version, Room: join.Room, Identity: join.Identity,
		Session: "session", Resumed: join.Resume != nil, Resume: signal.ResumeGrant{Secret: "secret", GraceMS: 60000},
	}
	change(joined)
	s.say(joined)
	return join
}

// TestTheSessionContinuesOnAnotherServer ends the first server in several ways.
func TestTheSessionContinuesOnAnotherServer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		// first plays the first server after the join, with the address of the second. The server accepts no further
		// websocket.
		first  func(s *played, second string)
		nodes  bool
		secret string
	}{
		{"it ends", func(*played, string) {}, true, "secret"},
		{"it ends after a list", func(s *played, second string) {
			s.say(&signal.Nodes{Nodes: addressed(unreachable, second)})
		}, false, "secret"},
		{"it ends after a further secret", func(s *played, second string) {
			s.say(&signal.Nodes{Nodes: addressed(second), Secret: "renewed"})
			s.say(&signal.Nodes{Nodes: addressed(second)})
		}, false, "renewed"},
		{"it sends the client away", func(s *played, second string) {
			s.say(&signal.Moved{URL: second, Ticket: "ticket"})
			s.listen()
		}, false, "ticket"},
		{"it drains", func(s *played, second string) {
			s.say(&signal.Moved{URL: unreachable, Ticket: "ticket"})
			s.listen()
		}, true, "secret"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			resumes := make(chan *signal.Join, 10)
			second := playing(t, func(s *played) {
				resumes <- s.admit(time.Minute)
				s.listen()
			})
			first := playing(t, func(s *played) {
				s.admitWith(func(joined *signal.Joined) {
					if test.nodes {
						joined.Nodes = addressed(second)
					}
				})
				test.first(s, second)
			}, nil)
			s := joinPlayed(t, first, signalling.DefaultTimes)
			expectEvent[Interrupted](t, s)
			expectEvent[Resumed](t, s)
			join := <-resumes
			r := join.Resume
			if r == nil || r.Session != "session" || r.Secret != test.secret || !r.NewConnection || !join.Moves {
				t.Errorf("resumed with %+v", r)
			}
		})
	}
}

// TestTheNextServerSendsTheClientBack: the first server lives, and only the websocket has broken. The reply of the
// second server to the first attempt is an error that passes.
func TestTheNextServerSendsTheClientBack(t *testing.T) {
	t.Parallel()
	resumes := make(chan *signal.Join, 10)
	var first string
	known := make(chan struct{})
	second := playing(t, func(s *played) {
		join := s.next()
		s.say(&signal.Error{
			Header: signal.Header{ID: join.Head().ID}, Code: signal.CodeInternal, Message: "later", RetryAfterMS: 1,
		})
		s.listen()
	}, func(s *played) {
		<-known
		s.say(moved(s.next(), first))
	})
	first = playing(t, func(s *played) {
		s.admitWith(func(joined *signal.Joined) { joined.Nodes = addressed(second) })
	}, nil, nil, func(s *played) {
		resumes <- s.admit(time.Minute)
		s.listen()
	})
	close(known)
	s := joinPlayed(t, first, signalling.DefaultTimes)
	expectEvent[Resumed](t, s)
	if r := (<-resumes).Resume; r == nil || r.Secret != "ticket" {
		t.Errorf("resumed with %+v", r)
	}
}

// TestASilentServerIsLeftForAnother: media has arrived, and then neither media nor messages arrive.
func TestASilentServerIsLeftForAnother(t *testing.T) {
	t.Parallel()
	resumes := make(chan time.Time, 1)
	second := playing(t, func(s *played) {
		if r := s.admit(time.Minute).Resume; r == nil || !r.NewConnection {
			t.Errorf("resumed with %+v", r)
		}
		resumes <- time.Now()
		s.listen()
	})
	first := playing(t, func(s *played) {
		s.admitWith(func(joined *signal.Joined) { joined.Nodes = addressed(second) })
		<-s.over
	}, nil)
	s := joinPlayed(t, first, signalling.DefaultTimes)
	s.path.media().mu.Lock()
	s.path.media().connected, s.path.media().lastReceived = true, time.Now()
	began := s.path.media().lastReceived
	s.path.media().mu.Unlock()
	expectEvent[Resumed](t, s)
	if took := (<-resumes).Sub(began); took < failover.SilentAfter+failover.ReplyWithin {
		t.Errorf("the server is left after %v, expected at least %v", took, failover.SilentAfter+failover.ReplyWithin)
	}
}

// TestALostStateIsRequestedAgain resumes on a server that has nothing of the session but its name.
func TestALostStateIsRequestedAgain(t *testing.T) {
	t.Parallel()
	heard := make(chan signal.Message, 100)
	second := playing(t, func(s *played) {
		s.admitWith(func(joined *signal.Joined) { joined.Restored = new(bool) })
		for m := s.next(); m != nil; m = s.next() {
			heard <- m
		}
	})
	first := playing(t, func(s *played) {
		s.admitWith(func(joined *signal.Joined) {
			joined.Nodes, joined.Attributes = addressed(second), map[string]string{"name": "Ada"}
		})
		for {
			m := s.next()
			if m == nil {
				return
			}
			if m.Head().ID != "" {
				s.say(&signal.OK{Header: signal.Header{ID: m.Head().ID}})
			} else if m.Head().Type == signal.TypePose {
				return
			}
		}
	}, nil)
	s := joinPlayed(t, first, signalling.DefaultTimes)
	ctx, cancel := context.WithTimeout(t.Context(), longEnough)
	defer cancel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	p, err := s.Publish(ctx, described("body", volumetric.MIMEVolumetric, 1, 1))
	must(err)
	_, err = s.Publish(ctx, described("gone", volumetric.MIMEVolumetric, 1, 1))
	must(err)
	must(s.Mute(ctx, "", "gone", true))
	must(s.Unpublish(ctx, "gone"))
	must(s.Mute(ctx, "", "body", true))
	ref := volumetric.PublicationRef{Participant: "bob", Publication: "hat"}
	one, two := 1, 2
	must(s.SetQuality(ctx, signal.Choice{PublicationRef: ref, Tile: &one, Quality: signal.Only(3)}))
	must(s.SetQuality(ctx, signal.Choice{PublicationRef: ref, Quality: signal.Only(0)}))
	must(s.SetQuality(ctx, signal.Choice{PublicationRef: ref, Tile: &two, Quality: signal.Only(1)}))
	must(s.SetLimits(ctx, 50e6, 0))
	s.SetViewpoint(Viewpoint{Position: [3]float64{1, 2, 3}})
	p.SetPose(Pose{Position: [3]float64{4, 5, 6}})
	expectEvent[Resumed](t, s)
	got := make(map[signal.Type]string)
	for len(got) < 6 {
		select {
		case m := <-heard:
			if m.Head().Type == signal.TypeUplink {
				continue
			}
			text, err := json.Marshal(m)
			must(err)
			got[m.Head().Type] += string(text)
		case <-ctx.Done():
			t.Fatalf("the server receives only %v", got)
		}
	}
	for kind, want := range map[signal.Type]string{
		signal.TypePublish:    `"name":"body"`,
		signal.TypeAttributes: `{"name":"Ada"}`,
		signal.TypeSetQuality: `[{"participant":"bob","publication":"hat","quality":0},` +
			`{"participant":"bob","publication":"hat","tile":2,"quality":1}]`,
		signal.TypeMute:      `"publication":"body","muted":true`,
		signal.TypeViewpoint: `"position":[1,2,3]`,
		signal.TypePose:      `"position":[4,5,6]`,
	} {
		if text := got[kind]; !strings.Contains(text, want) || strings.Contains(text, "gone") {
			t.Errorf("%s: %s, expected %s", kind, text, want)
		}
	}
}
