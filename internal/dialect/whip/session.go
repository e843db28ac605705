package whip

import (
	"crypto/rand"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
)

const (
	// changeRate and changeBurst limit the PATCH requests of one session. A client sends its candidates in a few
	// requests, and restarts ICE once per change of its network.
	changeRate, changeBurst = 2, 20
	// answerPatience bounds the wait for the room's answer, which takes milliseconds.
	answerPatience = 10 * time.Second
)

// session is one encoder or player. It implements sfu.Outbox and is safe for concurrent use.
type session struct {
	server *Server
	// path is the path of the session's address.
	path        string
	protocol    string
	room        string
	identity    string
	fingerprint signalling.Fingerprint
	// release ends the counts of the session's address and token.
	release func()
	changes *rate.Limiter
	// changing is held during a PATCH request.
	changing sync.Mutex
	// ended is closed when the participant has left the room.
	ended chan struct{}

	mu sync.Mutex
	// place is nil before the join.
	place signalling.Session
	// waiting has the channels of the requests that wait for a reply, by id.
	waiting map[string]chan reply
	// servers are the ICE servers for the client.
	servers []signal.ICEServer
	// remote and local are the ICE credentials of the client and of the server.
	remote, local description.Transport
	over          bool
	code          signal.Code
	reason        string
}

// reply is a room's reply to a request: an answer, or an error.
type reply struct {
	sdp string
	err *signal.Error
}

// newSession returns a session below the path of an endpoint.
func newSession(s *Server, endpoint string) *session {
	return &session{
		server: s, path: endpoint + "/" + rand.Text(), changes: rate.NewLimiter(changeRate, changeBurst),
		ended: make(chan struct{}), waiting: make(map[string]chan reply),
	}
}

// Send implements sfu.Outbox. Messages without a form in WHIP are ignored.
func (s *session) Send(m signal.Message) bool {
	switch m := m.(type) {
	case *signal.Joined:
		s.mu.Lock()
		s.servers = m.ICEServers
		s.mu.Unlock()
	case *sfu.Answer:
		s.resolve(m.ID, reply{sdp: m.SDP})
	case *signal.Error:
		s.resolve(m.ID, reply{err: m})
	}
	return true
}

// Close implements sfu.Outbox.
func (s *session) Close(code signal.Code, reason string) {
	s.mu.Lock()
	before := s.over
	if !before {
		s.over, s.code, s.reason = true, code, reason
	}
	s.mu.Unlock()
	if before {
		return
	}
	s.server.forget(s)
	s.release()
	close(s.ended)
}

// expect returns the channel of the reply to the request with an id.
func (s *session) expect(id string) <-chan reply {
	replies := make(chan reply, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[id] = replies
	return replies
}

func (s *session) resolve(id string, r reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if replies := s.waiting[id]; replies != nil {
		delete(s.waiting, id)
		replies <- r
	}
}

// await waits for the reply to a request, and parses the answer. done is closed when the client has gone.
func (s *session) await(done <-chan struct{}, replies <-chan reply) (*description.Description, string, *problem) {
	timer := time.NewTimer(answerPatience)
	defer timer.Stop()
	select {
	case r := <-replies:
		if r.err != nil {
			return nil, "", problemOf(r.err)
		}
		answer, err := description.Parse(r.sdp)
		if err != nil {
			return nil, "", &problem{statusOf(signal.CodeInternal), signal.CodeInternal, err.Error()}
		}
		s.mu.Lock()
		s.local = answer.Transport
		s.mu.Unlock()
		return answer, r.sdp, nil
	case <-s.ended:
		return nil, "", problemOf(&signal.Error{Code: s.code, Message: s.reason})
	case <-done:
	case <-timer.C:
	}
	return nil, "", problemOf(&signal.Error{Code: signal.CodeInternal, Message: "the room did not answer in time"})
}

// do passes a message to the room.
func (s *session) do(m signal.Message) {
	s.mu.Lock()
	place := s.place
	s.mu.Unlock()
	if place != nil {
		place.Handle(m, time.Now())
	}
}

// leave ends the session and waits until its participant has left.
func (s *session) leave() {
	s.do(&signal.Leave{})
	<-s.ended
}

// tag returns the entity tag of the present ICE session, which changes with each restart (RFC 9725 section 4.3.1).
func (s *session) tag() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return `"` + s.local.Ufrag + `"`
}
