package client

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

// longEnough bounds the wait of a test for an event that should come soon.
const longEnough = wait.Patience

// played is a server whose messages the test chooses. It has no media.
type played struct {
	t    *testing.T
	conn *websocket.Conn
	// over is closed when the test ends.
	over <-chan struct{}
}

// playing starts a server that plays one scene for each websocket, and the last scene for all further websockets. It
// returns the server's address.
func playing(t *testing.T, scenes ...func(s *played)) string {
	t.Helper()
	over := make(chan struct{})
	var mu sync.Mutex
	opened := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		scene := scenes[min(opened, len(scenes)-1)]
		opened++
		mu.Unlock()
		if scene == nil {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		scene(&played{t, conn, over})
	}))
	t.Cleanup(func() {
		close(over)
		server.CloseClientConnections()
		server.Close()
	})
	return "ws" + strings.TrimPrefix(server.URL, "http")
}

// next returns the client's next message, nil if the websocket has ended. Questions about the clock are skipped.
func (s *played) next() signal.Message {
	for {
		_, data, err := s.conn.ReadMessage()
		if err != nil {
			return nil
		}
		m, err := signal.DecodeFromClient(data)
		if err != nil {
			s.t.Errorf("the client says %q: %v", data, err)
			return nil
		}
		if _, asks := m.(*signal.Time); !asks {
			return m
		}
	}
}

func (s *played) say(m signal.Message) {
	data, err := signal.Encode(m)
	if err != nil {
		s.t.Error(err)
		return
	}
	_ = s.conn.WriteMessage(websocket.TextMessage, data)
}

// admit accepts the client's join or resume, and returns it.
func (s *played) admit(grace time.Duration) *signal.Join {
	join, ok := s.next().(*signal.Join)
	if !ok {
		return &signal.Join{}
	}
	s.say(&signal.Joined{
		Header: signal.Header{ID: join.ID}, Version: signal.Version, Room: join.Room, Identity: join.Identity,
		Session: "session", Resumed: join.Resume != nil,
		Resume:     signal.ResumeGrant{Secret: "secret", GraceMS: int(grace.Milliseconds())},
		ICEServers: []signal.ICEServer{}, Participants: []signal.Participant{},
	})
	return join
}

// listen reads until the websocket ends. Reading answers pings, as in real servers.
func (s *played) listen() {
	for s.next() != nil {
	}
}

// joinPlayed joins a server that plays scenes. The session ends with the test.
func joinPlayed(t *testing.T, url string, times signalling.Times) *Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), longEnough)
	defer cancel()
	s, err := Join(ctx, Config{URL: url, Room: "room", Identity: "ada", times: times})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// No server would reply to a leave.
		s.lifetime.End(ErrClosed)
		_ = s.Close()
	})
	return s
}

// expectEvent waits for an event of a type. It fails if the session ends before.
func expectEvent[E Event](t *testing.T, s *Session) E {
	t.Helper()
	late := time.After(longEnough)
	for {
		select {
		case e, open := <-s.Events():
			if !open {
				t.Fatalf("the session has ended: %v", s.Err())
			}
			if wanted, ok := e.(E); ok {
				return wanted
			}
		case <-late:
			var none E
			t.Fatalf("timed out waiting for %T", none)
		}
	}
}

// staying accepts the client whenever it resumes.
func staying(s *played) {
	s.admit(time.Minute)
	s.listen()
}

// TestASilentServerIsLeft long before the server expires the client: a network that has gone sends no error.
func TestASilentServerIsLeft(t *testing.T) {
	t.Parallel()
	url := playing(t, func(s *played) {
		s.admit(time.Minute)
		<-s.over
	}, staying)
	times := signalling.DefaultTimes
	times.Ping, times.Silence = 50*time.Millisecond, 500*time.Millisecond
	s := joinPlayed(t, url, times)
	expectEvent[Resumed](t, s)
}

// TestResumingGoesOnBeyondTheGrace of a server that noticed the broken websocket later than the client.
func TestResumingGoesOnBeyondTheGrace(t *testing.T) {
	t.Parallel()
	const grace = 3 * time.Second
	var broken atomic.Int64
	url := playing(t, func(s *played) {
		s.admit(grace)
		broken.Store(time.Now().UnixNano())
	}, func(s *played) {
		if time.Since(time.Unix(0, broken.Load())) > grace {
			staying(s)
		}
	})
	s := joinPlayed(t, url, signalling.DefaultTimes)
	expectEvent[Resumed](t, s)
}

// TestAnAttemptToResumeThatIsNotAnsweredIsGivenUp: the network may break again, or the reply may be lost.
func TestAnAttemptToResumeThatIsNotAnsweredIsGivenUp(t *testing.T) {
	t.Parallel()
	url := playing(t, func(s *played) { s.admit(time.Minute) }, nil, func(s *played) {
		s.next()
		<-s.over
	}, staying)
	times := signalling.DefaultTimes
	times.Silence, times.Attempt = time.Hour, 500*time.Millisecond
	s := joinPlayed(t, url, times)
	expectEvent[Resumed](t, s)
}

// TestLossyMessagesAfterAnOutage are numbered from 1 again if their sender has left and returned meanwhile.
func TestLossyMessagesAfterAnOutage(t *testing.T) {
	t.Parallel()
	pass := func(s *played, seq int64, text string) {
		s.admit(time.Minute)
		s.say(&signal.Data{Seq: seq, Participant: "bob", Topic: "hand", Lossy: true, Text: text})
	}
	received := make(chan struct{})
	url := playing(t, func(s *played) {
		pass(s, 5, "before")
		select {
		case <-received:
		case <-s.over:
		}
	}, func(s *played) {
		pass(s, 1, "after")
		s.listen()
	})
	s := joinPlayed(t, url, signalling.DefaultTimes)
	expect := func(text string) {
		t.Helper()
		select {
		case m := <-s.Data():
			if m.Text != text {
				t.Errorf("got %q, expected %q", m.Text, text)
			}
		case <-time.After(longEnough):
			t.Fatalf("the message %q was not delivered", text)
		}
	}
	expect("before")
	close(received)
	expect("after")
}

// endConnection announces to the client that its peer connection has ended.
func endConnection(s *played) {
	s.admit(time.Minute)
	s.say(&signal.Closing{Code: signal.CodeConnection, Message: "the peer connection was ended"})
}

func TestAnEndedPeerConnectionIsMadeAnew(t *testing.T) {
	t.Parallel()
	asked := make(chan *signal.ResumeRequest, 10)
	url := playing(t, endConnection, func(s *played) {
		asked <- s.admit(time.Minute).Resume
		s.listen()
	})
	s := joinPlayed(t, url, signalling.DefaultTimes)
	expectEvent[Closing](t, s)
	expectEvent[Resumed](t, s)
	if resume := <-asked; resume == nil || !resume.NewConnection {
		t.Errorf("asked for %+v, expected a new connection", resume)
	}
}

// TestAnEndedSessionSaysWhy: the server refuses the resume of a client whose peer connection it ended.
func TestAnEndedSessionSaysWhy(t *testing.T) {
	t.Parallel()
	url := playing(t, endConnection, func(s *played) {
		if join := s.next(); join != nil {
			s.say(&signal.Error{Header: signal.Header{ID: join.Head().ID}, Code: signal.CodeResume,
				Message: "the session is over"})
			s.listen()
		}
	})
	s := joinPlayed(t, url, signalling.DefaultTimes)
	select {
	case <-s.Done():
	case <-time.After(longEnough):
		t.Fatal("the session has not ended")
	}
	var why *signal.Error
	if err := s.Err(); !errors.Is(err, ErrLost) || !errors.As(err, &why) || why.Code != signal.CodeConnection {
		t.Errorf("ended with %v, expected %v, around %q", err, ErrLost, signal.CodeConnection)
	}
}

// TestPublishingOutlivesABrokenWebsocket, whether or not the server has accepted the request.
func TestPublishingOutlivesABrokenWebsocket(t *testing.T) {
	t.Parallel()
	refused := func(code signal.Code) func(id string) signal.Message {
		return func(id string) signal.Message {
			return &signal.Error{Header: signal.Header{ID: id}, Code: code, Message: "no"}
		}
	}
	taken := func(id string) signal.Message { return &signal.OK{Header: signal.Header{ID: id}} }
	for _, test := range []struct {
		name  string
		reply func(id string) signal.Message
		ask   func(ctx context.Context, s *Session) error
		fails bool
	}{
		{"published twice", refused(signal.CodeExists), publishBody, false},
		{"published once", taken, publishBody, false},
		{"not published", refused(signal.CodeLimit), publishBody, true},
		{"ended twice", refused(signal.CodeNotFound),
			func(ctx context.Context, s *Session) error { return s.Unpublish(ctx, "body") }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			url := playing(t, func(s *played) {
				s.admit(time.Minute)
				s.next()
			}, func(s *played) {
				s.admit(time.Minute)
				for m := s.next(); m != nil; m = s.next() {
					s.say(test.reply(m.Head().ID))
				}
			})
			s := joinPlayed(t, url, signalling.DefaultTimes)
			ctx, cancel := context.WithTimeout(context.Background(), longEnough)
			defer cancel()
			if err := test.ask(ctx, s); (err != nil) != test.fails {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestPublishingWhileTheWebsocketIsBroken waits for the next websocket, until the caller's context or the session ends.
func TestPublishingWhileTheWebsocketIsBroken(t *testing.T) {
	t.Parallel()
	returns := make(chan struct{})
	url := playing(t, func(s *played) { s.admit(time.Minute) }, func(s *played) {
		select {
		case <-returns:
		case <-s.over:
			return
		}
		s.admit(time.Minute)
		for m := s.next(); m != nil; m = s.next() {
			s.say(&signal.OK{Header: signal.Header{ID: m.Head().ID}})
		}
	})
	s := joinPlayed(t, url, signalling.DefaultTimes)
	expectEvent[Interrupted](t, s)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := publishBody(over, s); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want an error around %v", err, context.Canceled)
	}
	ctx, stop := context.WithTimeout(t.Context(), longEnough)
	defer stop()
	published := make(chan error, 1)
	go func() { published <- publishBody(ctx, s) }()
	select {
	case err := <-published:
		t.Fatalf("got %v before the websocket was back", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(returns)
	if err := <-published; err != nil {
		t.Errorf("got %v", err)
	}
}

func publishBody(ctx context.Context, s *Session) error {
	_, err := s.Publish(ctx, described("body", volumetric.MIMEVolumetric, 1, 1))
	return err
}
