package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/sfu/admission"
)

// nodeRooms are the rooms of one node: the identities of each room. Actions are those of fakeRooms.
type nodeRooms struct {
	fakeRooms
	rooms map[string][]string
	// refusal is the error of SetMetadata, nil for success. later is added to the ends of bans and revocations.
	refusal error
	later   time.Duration
}

func (n *nodeRooms) Bans() []admission.Ban {
	bans := n.fakeRooms.Bans()
	bans[0].Until = bans[0].Until.Add(n.later)
	return bans
}

func (n *nodeRooms) Revocations() []admission.Revocation {
	return []admission.Revocation{{ID: "e", Until: time.Unix(9, 0).UTC().Add(n.later), Seen: n.later > 0}}
}

func (n *nodeRooms) States(_ context.Context, room string, _ bool) ([]sfu.RoomState, error) {
	states := []sfu.RoomState{}
	for name, identities := range n.rooms {
		if room != "" && name != room {
			continue
		}
		state := sfu.RoomState{Name: name, Participants: []sfu.ParticipantState{}}
		for _, identity := range identities {
			state.Participants = append(state.Participants, sfu.ParticipantState{Identity: identity})
		}
		states = append(states, state)
	}
	return states, nil
}

func (n *nodeRooms) SetRoom(_ context.Context, room string, _ admission.RoomSettings, _ bool) (bool, error) {
	n.done("set %s", room)
	_, exists := n.rooms[room]
	if !exists {
		n.rooms[room] = nil
	}
	return !exists, nil
}

func (n *nodeRooms) SetMetadata(_ context.Context, room string, m map[string]string) error {
	n.done("metadata %s %v", room, m)
	return n.refusal
}

func (n *nodeRooms) Kick(_ context.Context, room, identity string, ban time.Duration) error {
	n.done("kick %s %s %v", room, identity, ban)
	if !slices.Contains(n.rooms[room], identity) && ban == 0 {
		return sfu.ErrNotFound
	}
	return nil
}

func (n *nodeRooms) CloseRoom(_ context.Context, room string) error {
	n.done("close %s", room)
	return nil
}

func (n *nodeRooms) Revoke(id string, _ time.Duration) error {
	n.done("revoke %s", id)
	return nil
}

// testNode is one node of a testCluster.
type testNode struct {
	name  string
	rooms *nodeRooms
	host  *fakeHost
	api   *API
	state NodeLife
	// silent is set if the node does not answer, draining if it refuses participants. late is set if it does not answer
	// requests that change something.
	silent, draining, late bool
}

// testCluster are nodes in this process. testCluster implements Cluster for the node self.
type testCluster struct {
	nodes []*testNode
	self  string
	// differs is set if this node takes all nodes for suitable.
	differs bool
}

func (c *testCluster) Self() string { return c.self }

func (c *testCluster) Nodes() []NodeState {
	var states []NodeState
	for _, n := range c.nodes {
		state := NodeState{Name: n.name, Self: n.name == c.self, Region: "eu", State: n.state, Draining: n.draining,
			URL: "wss://sfu.example.org", Load: 0.5, Version: 1, Started: time.Unix(1, 0).UTC(),
			Beat: time.Unix(2, 0).UTC()}
		if !state.Self {
			state.Trunk = &TrunkState{Lanes: 1, RoundTrip: 0.4, Estimate: 2e8, Silent: n.silent}
		}
		states = append(states, state)
	}
	return states
}

func (c *testCluster) node(name string) *testNode {
	return c.nodes[slices.IndexFunc(c.nodes, func(n *testNode) bool { return n.name == name })]
}

func (c *testCluster) Do(node string, r *http.Request) (*http.Response, error) {
	n := c.node(node)
	if n.silent || n.late && r.Method != http.MethodGet {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	w := httptest.NewRecorder()
	n.api.ForNodes().ServeHTTP(w, r)
	return w.Result(), nil
}

func (c *testCluster) Move(room, node string) (moved, remaining int, err error) {
	n := c.node(c.self)
	if c.node(node).draining && !c.differs {
		return 0, 0, fmt.Errorf("%w: %q drains", ErrUnsuitable, node)
	}
	n.rooms.done("move %s to %s", room, node)
	return len(n.rooms.rooms[room]), 1, nil
}

// newTestCluster returns the nodes a, b and c, which have the room lab with ada, bob and nobody, and the dead node d.
// Node b also has the room attic.
func newTestCluster() map[string]*testNode {
	nodes := map[string]*testNode{}
	var ordered []*testNode
	for _, name := range []string{"a", "b", "c", "d"} {
		nodes[name] = &testNode{name: name, rooms: &nodeRooms{rooms: map[string][]string{}}, host: &fakeHost{},
			state: NodeAlive}
		ordered = append(ordered, nodes[name])
	}
	nodes["a"].rooms.rooms["lab"] = []string{"ada"}
	nodes["b"].rooms.rooms["lab"] = []string{"bob"}
	nodes["b"].rooms.rooms["attic"] = []string{"eve"}
	nodes["d"].state = NodeDead
	for _, n := range ordered {
		n.api = NewAPI(gate{}, n.rooms, n.host, quiet{zap.NewNop()}, &testCluster{nodes: ordered, self: n.name})
	}
	return nodes
}

// asked returns the reply of a node to a request.
func (n *testNode) asked(method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	n.api.ServeHTTP(w, httptest.NewRequest(method, APIPath+path, strings.NewReader(body)))
	return w
}

// TestClusterRequests: requests to one node have their effect on the nodes that they concern.
func TestClusterRequests(t *testing.T) {
	for _, test := range []struct {
		method, path, body string
		status             int
		text               string
		// actions are those of the nodes, each with the node's name before it.
		actions []string
	}{
		{"DELETE", "rooms/lab/participants/bob", "", 204, "", []string{"b kick lab bob 0s"}},
		{"DELETE", "rooms/lab/participants/eve", "", 404, `\"eve\" in room \"lab\" on any node`, nil},
		{"DELETE", "rooms/lab/participants/eve?ban=1h", "", 204, "",
			[]string{"a kick lab eve 1h0m0s", "b kick lab eve 1h0m0s", "c kick lab eve 1h0m0s"}},
		{"DELETE", "rooms/lab/participants/eve?ban=x", "", 400, "expected a duration", nil},
		{"PATCH", "rooms/lab/participants/bob", `{"muted": {"body": true}}`, 204, "",
			[]string{"b mute lab bob body true"}},
		{"PATCH", "rooms/lab/participants/bob", `{"muted": {"nothing": true}}`, 404, "nothing",
			[]string{"b mute lab bob nothing true"}},
		{"PATCH", "rooms/lab/participants/bob", `{"mute": {}}`, 400, "invalid body", nil},
		{"DELETE", "rooms/attic", "", 204, "", []string{"b close attic"}},
		{"DELETE", "rooms/cellar", "", 404, `room \"cellar\" on any node`, nil},
		{"PATCH", "rooms/lab", `{"metadata": {"title": "Talk"}}`, 204, "",
			[]string{"a metadata lab map[title:Talk]", "b metadata lab map[title:Talk]"}},
		{"PUT", "rooms/attic", "{}", 200, `"name":"attic"`, []string{"b set attic"}},
		{"PUT", "rooms/cellar", "{}", 201, `"nodes":["a"]`, []string{"a set cellar"}},
		{"PUT", "rooms/lab", "{" + strings.Repeat(" ", maxBodyBytes) + "}", 400, "at most", nil},
		{"POST", "rooms/attic/messages", `{"text": "Hi"}`, 204, "", []string{"b data attic []  Hi "}},
		{"POST", "rooms/lab/messages", `{"text": "Hi"}`, 204, "", []string{"a data lab []  Hi "}},
		{"POST", "rooms/cellar/messages", `{"text": "Hi"}`, 404, "cellar", nil},
		{"PUT", "revocations/x", "", 204, "", []string{"a revoke x", "b revoke x", "c revoke x"}},
		{"GET", "bans", "", 200, `{"bans":[{"room":"lab","identity":"eve",`, nil},
		{"GET", "revocations", "", 200, `"id":"e"`, nil},
		{"GET", "nodes", "", 200, `"name":"d"`, nil},
		{"POST", "nodes/z/drain", "", 404, `\"z\", expected one of a, b, c, d`, nil},
		{"POST", "nodes/d/drain", "", 404, `\"d\" is dead`, nil},
		{"POST", "rooms/lab/move", `{"node": "c"}`, 200, `{"moved":2,"remaining":2}`,
			[]string{"a move lab to c", "b move lab to c"}},
		{"POST", "rooms/lab/move", `{"node": "c", "from": "b"}`, 200, `{"moved":1,"remaining":1}`,
			[]string{"b move lab to c"}},
		{"POST", "rooms/attic/move", `{"node": "b"}`, 404, `room \"attic\" on a, c`, nil},
		{"POST", "rooms/lab/move", `{"node": "b", "from": "b"}`, 400, "node and from are both", nil},
		{"POST", "rooms/lab/move", `{"node": "d"}`, 404, "dead", nil},
		{"POST", "rooms/lab/move", `{"node": "c", "from": "z"}`, 404, "expected one of", nil},
		{"POST", "rooms/lab/move", `{}`, 400, "node is missing", nil},
		{"POST", "rooms/%2e%2e/move", `{"node": "b"}`, 404, `room \"..\"`, nil},
	} {
		nodes := newTestCluster()
		got := nodes["a"].asked(test.method, test.path, test.body)
		var actions []string
		for _, name := range []string{"a", "b", "c", "d"} {
			for _, action := range nodes[name].rooms.actions {
				actions = append(actions, name+" "+action)
			}
		}
		if got.Code != test.status || !strings.Contains(got.Body.String(), test.text) ||
			!slices.Equal(actions, test.actions) {
			t.Errorf("%s %s %.60s: %d %s, actions %q, expected %d with %s and %q", test.method, test.path, test.body,
				got.Code, got.Body, actions, test.status, test.text, test.actions)
		}
	}
}

// TestClusterRooms: a node shows the rooms of all nodes, and names the dead node.
func TestClusterRooms(t *testing.T) {
	nodes := newTestCluster()
	var list roomList
	if err := json.Unmarshal(nodes["c"].asked("GET", "rooms", "").Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, room := range list.Rooms {
		for _, p := range room.Participants {
			text = append(text, fmt.Sprint(room.Name, room.Nodes, p.Identity, p.Node))
		}
	}
	want := []string{"attic[b]eveb", "lab[a b]adaa", "lab[a b]bobb"}
	if !slices.Equal(text, want) || !slices.Equal(list.Failed, []Failure{{"d", "the node is dead"}}) {
		t.Errorf("rooms are %q and failed %v, expected %q and d", text, list.Failed, want)
	}
	got := nodes["c"].asked("GET", "rooms/lab", "").Body.String()
	for _, part := range []string{`"identity":"ada"`, `"node":"b"`, `"nodes":["a","b"]`, `"failed":[{"node":"d"`} {
		if !strings.Contains(got, part) {
			t.Errorf("room lab is %s, expected %s", got, part)
		}
	}
	if got := nodes["c"].asked("GET", "rooms/cellar", ""); got.Code != http.StatusNotFound ||
		!strings.Contains(got.Body.String(), "node d: the node is dead") {
		t.Errorf("a room of no node: %d %s", got.Code, got.Body)
	}
}

// TestSilentNode: a node that does not answer is named, and the others answer.
func TestSilentNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := newTestCluster()
		nodes["b"].silent = true
		begin := time.Now()
		got := nodes["a"].asked("GET", "rooms", "").Body.String()
		if !strings.Contains(got, `"identity":"ada"`) ||
			!strings.Contains(got, `{"node":"b","error":"the node does not answer within 3s"}`) {
			t.Errorf("rooms are %s, expected ada and the error of b", got)
		}
		if passed := time.Since(begin); passed > nodeTimeout {
			t.Errorf("the reply took %v, expected %v at most", passed, nodeTimeout)
		}
		for _, test := range []struct {
			method, path string
			status       int
		}{
			{"PUT", "revocations/x", 502}, {"PATCH", "rooms/lab", 502}, {"DELETE", "rooms/lab", 204},
			{"DELETE", "rooms/lab/participants/bob", 502}, {"DELETE", "rooms/lab/participants/ada", 204},
			{"PUT", "rooms/cellar", 502}, {"POST", "rooms/attic/messages", 502}, {"POST", "nodes/b/drain", 502},
		} {
			got := nodes["a"].asked(test.method, test.path, "{}")
			named := strings.Contains(got.Body.String(), "b: the node does not answer")
			if got.Code != test.status || named != (test.status == http.StatusBadGateway) {
				t.Errorf("%s %s: %d %s, expected %d", test.method, test.path, got.Code, got.Body, test.status)
			}
		}
		moved := nodes["a"].asked("POST", "rooms/lab/move", `{"node": "c"}`).Body.String()
		if !strings.Contains(moved, `"moved":1`) || !strings.Contains(moved, `"failed":[{"node":"b"`) {
			t.Errorf("the result of moving is %s", moved)
		}
	})
}

// TestDrainOfNodes: a request to one node drains the named node only.
func TestDrainOfNodes(t *testing.T) {
	for _, name := range []string{"a", "b"} {
		nodes := newTestCluster()
		got := nodes["a"].asked("POST", "nodes/"+name+"/drain", "")
		for _, n := range nodes {
			if got.Code != http.StatusNoContent || n.host.drained.Load() != (n.name == name) {
				t.Errorf("drain of %s: %d %s, node %s drains: %t", name, got.Code, got.Body, n.name,
					n.host.drained.Load())
			}
		}
	}
	nodes := newTestCluster()
	nodes["c"].draining = true
	if got := nodes["a"].asked("POST", "rooms/lab/move", `{"node": "c"}`); got.Code != http.StatusConflict ||
		!strings.Contains(got.Body.String(), "drains") {
		t.Errorf("a move to a draining node: %d %s", got.Code, got.Body)
	}
	// The nodes differ in their view of node c.
	nodes["b"].api.cluster.(*testCluster).differs = true
	got := nodes["a"].asked("POST", "rooms/lab/move", `{"node": "c"}`)
	if text := got.Body.String(); got.Code != http.StatusOK || !strings.Contains(text, `"moved":1`) ||
		!strings.Contains(text, `"failed":[{"node":"a","error":"unsuitable node: \"c\" drains"}]`) {
		t.Errorf("a move that one node cannot make: %d %s", got.Code, text)
	}
	if got := nodes["a"].asked("POST", "rooms/attic/move", `{"node": "c", "from": "a"}`); got.Code !=
		http.StatusNotFound {
		t.Errorf("a move from a node without the room: %d %s", got.Code, got.Body)
	}
}

// TestARequestIsNotRepeated: if the node with the room does not answer, no other node sends the message.
func TestARequestIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := newTestCluster()
		nodes["c"].rooms.rooms["attic"] = []string{"eve"}
		nodes["b"].late = true
		got := nodes["a"].asked("POST", "rooms/attic/messages", `{"text": "Hi"}`)
		if got.Code != http.StatusBadGateway || len(nodes["c"].rooms.actions) != 0 {
			t.Errorf("a message to a room of b: %d %s, node c did %q", got.Code, got.Body, nodes["c"].rooms.actions)
		}
	})
}

// TestClusterFailures: the error of one node is the result, and errors of a node that fails are named.
func TestClusterFailures(t *testing.T) {
	nodes := newTestCluster()
	nodes["b"].rooms.refusal = errors.New("broken")
	if got := nodes["a"].asked("PATCH", "rooms/lab", "{}"); got.Code != http.StatusBadGateway ||
		!strings.Contains(got.Body.String(), "not done on all nodes: b: broken") {
		t.Errorf("metadata that one node does not take: %d %s", got.Code, got.Body)
	}
	nodes["b"].rooms.refusal = admission.ErrSettings
	if got := nodes["a"].asked("PATCH", "rooms/lab", "{}"); got.Code != http.StatusBadRequest {
		t.Errorf("metadata that one node refuses: %d %s", got.Code, got.Body)
	}
}

// TestListsOfNodes: entries that several nodes have appear once, with the latest end.
func TestListsOfNodes(t *testing.T) {
	nodes := newTestCluster()
	for path, want := range map[string]string{
		"bans":        `{"bans":[{"room":"lab","identity":"eve","token_id":"e","until":"1970-01-01T00:00:11Z"}]}`,
		"revocations": `{"revocations":[{"id":"e","until":"1970-01-01T00:00:11Z","seen":true}]}`,
	} {
		nodes["b"].rooms.later = 2 * time.Second
		if got := strings.TrimSpace(nodes["c"].asked("GET", path, "").Body.String()); got != want {
			t.Errorf("%s are %s, expected %s", path, got, want)
		}
	}
}

// TestAlone: without a cluster, requests about nodes are refused, and rooms have no nodes.
func TestAlone(t *testing.T) {
	a := NewAPI(gate{}, &fakeRooms{}, &fakeHost{}, quiet{zap.NewNop()}, nil)
	for _, request := range [][2]string{
		{"GET", "nodes"}, {"POST", "nodes/a/drain"}, {"POST", "rooms/lab/move"},
	} {
		got := ask(a, request[0], APIPath+request[1])
		if got.Code != http.StatusNotFound || !strings.Contains(got.Body.String(), "without --cluster") {
			t.Errorf("%v: %d %s", request, got.Code, got.Body)
		}
	}
	if got := ask(a, "GET", "/admin/v1/rooms").Body.String(); strings.Contains(got, `"node`) ||
		strings.Contains(got, `"failed"`) {
		t.Errorf("rooms of a server that runs alone are %s", got)
	}
}
