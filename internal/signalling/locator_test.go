package signalling

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/test/wait"
)

// nodesByRoom is a Locator of a cluster.
type nodesByRoom map[string]Node

// Locate implements Locator.
func (n nodesByRoom) Locate(q *sfu.JoinRequest) Node { return n[q.Room] }

// playedNode is a Node that records the messages of its only client. If refuses is set, it refuses every join.
type playedNode struct {
	refuses  *signal.Error
	joined   chan sfu.JoinRequest
	messages chan signal.Message
	detached chan struct{}
}

func newPlayedNode(refuses *signal.Error) *playedNode {
	return &playedNode{
		refuses: refuses, joined: make(chan sfu.JoinRequest, 1), messages: make(chan signal.Message, 1),
		detached: make(chan struct{}),
	}
}

// Join implements Node.
func (n *playedNode) Join(q sfu.JoinRequest) (Session, *signal.Error) {
	n.joined <- q
	if n.refuses != nil {
		return nil, n.refuses
	}
	return n, nil
}

// Handle implements Session.
func (n *playedNode) Handle(m signal.Message, _ time.Time) { n.messages <- m }

// Choose implements Session. Clients of signalling v1 have no such messages.
func (n *playedNode) Choose(sfu.Chooser, time.Time) {
	panic("not signalling v1")
}

// Detach implements Session.
func (n *playedNode) Detach() { close(n.detached) }

// forRoom is an Authenticator whose token names a room, so that the join need not name it.
type forRoom string

// Authenticate implements Authenticator.
func (r forRoom) Authenticate(*http.Request) (Credentials, error) {
	return Credentials{Room: string(r), Grants: sfu.Grants{Subscribe: true}}, nil
}

// dialNode serves clients of the room on the nodes and connects one client.
func dialNode(t *testing.T, room string, nodes nodesByRoom) *websocket.Conn {
	t.Helper()
	handler, err := NewServer(DefaultConfig(), nodes, forRoom(room), uncounted{}, NewLog(zap.NewNop()), false)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	conn, answer, err := websocket.DefaultDialer.Dial("ws"+server.URL[len("http"):], nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// within receives the next value from a channel within a time limit.
func within[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(wait.Patience):
		t.Fatalf("timed out: %s", what)
		panic("unreachable")
	}
}

// TestClientsJoinTheNodeOfTheirRoom checks that the room of the token selects the node for the join, later messages and
// the end of the websocket.
func TestClientsJoinTheNodeOfTheirRoom(t *testing.T) {
	hall, attic := newPlayedNode(nil), newPlayedNode(nil)
	conn := dialNode(t, "hall", nodesByRoom{"hall": hall, "attic": attic})
	join := &signal.Join{
		Header: signal.Header{Type: signal.TypeJoin}, Version: signal.Version, Identity: "ann", Receive: true,
	}
	if err := conn.WriteJSON(join); err != nil {
		t.Fatal(err)
	}
	if q := within(t, "the join", hall.joined); q.Room != "hall" || q.Identity != "ann" || !q.Grants.Subscribe {
		t.Errorf("%s joins room %s with the grants %+v", q.Identity, q.Room, q.Grants)
	}
	if err := conn.WriteJSON(&signal.Time{Header: signal.Header{Type: signal.TypeTime}, T0: 7}); err != nil {
		t.Fatal(err)
	}
	if m, ok := within(t, "a message", hall.messages).(*signal.Time); !ok || m.T0 != 7 {
		t.Errorf("the session gets %+v", m)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	within(t, "the end of the websocket", hall.detached)
	if len(attic.joined) > 0 {
		t.Error("the client joins a node that does not have its room")
	}
}

// TestTheNodesRefusalIsSent checks that a client whose join is refused receives the reason and has no session.
func TestTheNodesRefusalIsSent(t *testing.T) {
	full := newPlayedNode(&signal.Error{Code: signal.CodeLimit, Message: "100 participants are the limit"})
	conn := dialNode(t, "hall", nodesByRoom{"hall": full})
	join := &signal.Join{
		Header: signal.Header{Type: signal.TypeJoin, ID: "1"}, Version: signal.Version, Identity: "ann", Receive: true,
	}
	says := &signal.Time{Header: signal.Header{Type: signal.TypeTime, ID: "2"}, T0: 7}
	for _, step := range []struct {
		message  signal.Message
		id, want string
	}{{join, "1", string(signal.CodeLimit)}, {says, "2", string(signal.CodeNotJoined)}} {
		if err := conn.WriteJSON(step.message); err != nil {
			t.Fatal(err)
		}
		_, data, err := conn.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		answer, err := signal.DecodeFromServer(data)
		if err != nil {
			t.Fatal(err)
		}
		if refused, ok := answer.(*signal.Error); !ok || refused.ID != step.id || string(refused.Code) != step.want {
			t.Errorf("message %s is answered by %s, expected the error %s", step.id, data, step.want)
		}
	}
}
