package entry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/cluster/ticket"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/test/wait"
)

// played is a cluster with node a, on which the test runs. played implements View, Rooms and Clients.
type played struct {
	mu       sync.Mutex
	self     cluster.Node
	nodes    []cluster.Node
	rooms    map[string][]string
	homes    map[string]cluster.Home
	states   map[string]roomevent.SessionState
	keepers  []string
	here     map[string]bool
	clients  []signalling.Client
	shared   []string
	draining bool
	told     int
	ended    signal.Code
}

func (p *played) Self() cluster.Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.self
}

func (p *played) Nodes() []cluster.Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.nodes)
}

func (p *played) NodesOf(room string) []string { return slices.Clone(p.rooms[room]) }

func (p *played) Session(_, session string) (cluster.Home, roomevent.SessionState, bool) {
	home, ok := p.homes[session]
	return home, p.states[session], ok
}

func (p *played) Keepers(string, string, string) []string { return p.keepers }

func (p *played) Share(session, node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shared = append(p.shared, session+" "+node)
}

func (p *played) Drain() { p.draining = true }

func (p *played) HasSession(session string) bool { return p.here[session] }

func (p *played) TellSessions() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told++
}

func (p *played) Clients() []signalling.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.clients)
}

func (p *played) Proxies() signalling.Proxies { return signalling.Proxies{Unreachable: 7} }

func (p *played) EndProxies(code signal.Code) { p.ended = code }

// nodeOf returns a node that is alive, with the incarnation 1.
func nodeOf(name, region string, load float64) cluster.Node {
	return cluster.Node{
		Home:        cluster.Home{Node: name, Incarnation: 1},
		Description: cluster.Description{Region: region, URL: "wss://" + name, Proxy: name + ":7883"},
		Status:      cluster.Status{Load: load, JoinLoad: 0.001}, State: cluster.Alive, Beat: time.Now(),
	}
}

// newPlayed returns a cluster of nodes a, b and c, of which b has the room "hall".
func newPlayed() *played {
	return &played{
		self: nodeOf("a", "eu", 0.1), nodes: []cluster.Node{nodeOf("b", "eu", 0.1), nodeOf("c", "eu", 0.1)},
		rooms: map[string][]string{"hall": {"b"}}, homes: make(map[string]cluster.Home),
		states: make(map[string]roomevent.SessionState), here: make(map[string]bool),
	}
}

// record is the record of a session.
var record = []byte(`{"join": {"type": "join", "version": 1, "room": "hall", "identity": "ann", "receive": true}}`)

// secret is that of all clusters of the tests.
var secret = bytes.Repeat([]byte{1}, ticket.SecretBytes)

// newEntry returns the Entry of node a.
func newEntry(t *testing.T, p *played) *Entry {
	t.Helper()
	sealer, err := ticket.NewSealer(secret)
	if err != nil {
		t.Fatal(err)
	}
	e := New(Options{View: p, Rooms: p, Sealer: sealer, ResumeGrace: 15 * time.Second, Log: zap.NewNop()})
	e.clients = p
	return e
}

func (p *played) node(name string) *cluster.Node {
	return &p.nodes[slices.IndexFunc(p.nodes, func(n cluster.Node) bool { return n.Home.Node == name })]
}

// joinOf returns the join of ann in a room.
func joinOf(room string, moves bool) *sfu.JoinRequest {
	return &sfu.JoinRequest{
		Join: &signal.Join{Moves: moves}, Room: room, Identity: "ann",
		Grants: sfu.Grants{Publish: true, Subscribe: true},
	}
}

// resumeOf returns the resume of ann's session "s" with a ticket.
func resumeOf(text string, moves bool) *sfu.JoinRequest {
	q := joinOf("hall", moves)
	q.Join.Resume = &signal.ResumeRequest{Session: "s", Secret: text, NewConnection: true}
	return q
}

// ofSession returns the resume ticket of ann's session "s", whose home is b.
func ofSession() ticket.Ticket {
	return ticket.Ticket{
		Kind: ticket.Resume, Session: "s", Secret: "inner", Room: "hall", Identity: "ann",
		Grants: ticket.Subscribe | ticket.Data, Home: "b", Incarnation: 1, Epoch: 4, Expires: time.Now().Add(time.Hour),
	}
}

func (e *Entry) sealed(t *testing.T, content ticket.Ticket) string {
	t.Helper()
	text, err := e.options.Sealer.Seal(content, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestJoins places joins of a room without a session.
func TestJoins(t *testing.T) {
	for _, test := range []struct {
		name   string
		room   string
		change func(p *played, q *sfu.JoinRequest)
		node   string
		code   signal.Code
	}{
		{name: "the room's node", room: "hall", node: "b"},
		{name: "this node has the room", room: "hall", change: func(p *played, _ *sfu.JoinRequest) {
			p.rooms["hall"] = []string{"a"}
		}},
		{name: "the room's node is full", room: "hall", change: func(p *played, _ *sfu.JoinRequest) {
			p.node("b").Load, p.node("c").Load = 0.9, 0.9
		}},
		{name: "the room's node drains", room: "hall", change: func(p *played, _ *sfu.JoinRequest) {
			p.node("b").Draining, p.node("c").Draining = true, true
		}},
		{name: "the room's node is suspected", room: "hall", change: func(p *played, _ *sfu.JoinRequest) {
			p.node("b").State, p.node("c").State = cluster.Suspected, cluster.Dead
		}},
		{name: "a region in the join", room: "new", change: func(p *played, q *sfu.JoinRequest) {
			p.node("c").Region, q.Join.Region = "us", "us"
		}, node: "c"},
		{name: "all nodes are full", room: "hall", change: func(p *played, _ *sfu.JoinRequest) {
			p.self.Load, p.node("b").Load, p.node("c").Load = 0.9, 0.9, 0.9
		}, code: signal.CodeLimit},
		{name: "this node drains alone", room: "new", change: func(p *played, _ *sfu.JoinRequest) {
			p.self.Draining, p.nodes = true, nil
		}},
		{name: "this node drains", room: "new", change: func(p *played, _ *sfu.JoinRequest) {
			p.self.Draining, p.nodes = true, p.nodes[:1]
		}, node: "b"},
	} {
		for _, moves := range []bool{false, true} {
			p := newPlayed()
			e, q := newEntry(t, p), joinOf(test.room, moves)
			if test.change != nil {
				test.change(p, q)
			}
			route, refused := e.Route(q)
			if refused != nil || test.code != "" {
				if refused == nil || refused.Code != test.code || refused.RetryAfterMS != 1000 ||
					e.Counts().Refused.Full != 1 {
					t.Errorf("%s: refused with %v", test.name, refused)
				}
				continue
			}
			if route.Node != test.node || test.node != "" && route.URL != "wss://"+test.node {
				t.Errorf("%s: the route is %+v, expected to node %q", test.name, route, test.node)
			}
			counts := e.Counts()
			elsewhere := test.node != ""
			if elsewhere && (counts.Moved == 1) != moves || (counts.Moved+counts.Proxied == 1) != elsewhere {
				t.Errorf("%s: counts %+v", test.name, counts)
			}
		}
	}
}

// TestAnEntryTicketIsForItsNode repeats a join on other nodes with the ticket of moved.
func TestAnEntryTicketIsForItsNode(t *testing.T) {
	p := newPlayed()
	e := newEntry(t, p)
	route, _ := e.Route(joinOf("hall", true))
	here := newPlayed()
	here.self, here.nodes = nodeOf("b", "eu", 0.1), []cluster.Node{nodeOf("a", "eu", 0.1)}
	here.rooms["hall"] = []string{"a"}
	b := newEntry(t, here)
	with := func(change func(q *sfu.JoinRequest)) *sfu.JoinRequest {
		q := joinOf("hall", true)
		q.Join.Ticket = route.Ticket
		if change != nil {
			change(q)
		}
		return q
	}
	if there, refused := b.Route(with(nil)); refused != nil || there.Node != "" {
		t.Errorf("the node of the ticket: %+v, %v", there, refused)
	}
	b.draining.Store(true)
	if there, refused := b.Route(with(nil)); refused != nil || there.Node != "a" {
		t.Errorf("the node of the ticket drains: %+v, %v", there, refused)
	}
	if again, refused := e.Route(with(nil)); refused != nil || again.Node != "b" {
		t.Errorf("another node: %+v, %v", again, refused)
	}
	for name, change := range map[string]func(q *sfu.JoinRequest){
		"another room":     func(q *sfu.JoinRequest) { q.Room = "attic" },
		"another identity": func(q *sfu.JoinRequest) { q.Identity = "bob" },
		"no ticket":        func(q *sfu.JoinRequest) { q.Join.Ticket = "x" },
		"a resume ticket":  func(q *sfu.JoinRequest) { q.Join.Ticket = b.sealed(t, ofSession()) },
	} {
		if _, refused := b.Route(with(change)); refused == nil || refused.Code != signal.CodeResume {
			t.Errorf("%s: refused with %v", name, refused)
		}
	}
	if c := b.Counts(); c.Refused.Ticket != 4 || c.Refused.Unreachable != 7 {
		t.Errorf("counts %+v", c)
	}
}

// TestResumes resumes a session whose ticket names b as the home, on a.
func TestResumes(t *testing.T) {
	type outcome struct {
		node      string
		reconnect bool
		// epoch is that of an adoption. restored is set if there is a record.
		epoch    uint64
		restored bool
	}
	dead := func(p *played) { p.node("b").State = cluster.Dead }
	for _, test := range []struct {
		name   string
		change func(p *played, q *sfu.JoinRequest)
		want   outcome
	}{
		{name: "the home is alive", want: outcome{node: "b"}},
		{name: "the home is suspected", change: func(p *played, _ *sfu.JoinRequest) {
			p.node("b").State = cluster.Suspected
		}, want: outcome{epoch: 5}},
		{name: "the home is dead", change: func(p *played, _ *sfu.JoinRequest) { dead(p) }, want: outcome{epoch: 5}},
		{name: "the home has left", change: func(p *played, _ *sfu.JoinRequest) { p.nodes = p.nodes[1:] },
			want: outcome{epoch: 5}},
		{name: "the home has started again", change: func(p *played, _ *sfu.JoinRequest) {
			p.node("b").Incarnation = 2
		}, want: outcome{epoch: 5}},
		{name: "the home drains", change: func(p *played, _ *sfu.JoinRequest) { p.node("b").Draining = true },
			want: outcome{epoch: 5}},
		{name: "no new connection", change: func(p *played, q *sfu.JoinRequest) {
			dead(p)
			q.Join.Resume.NewConnection = false
		}, want: outcome{reconnect: true}},
		{name: "with a record", change: func(p *played, _ *sfu.JoinRequest) {
			dead(p)
			p.homes["s"] = p.node("b").Home
			p.states["s"] = roomevent.SessionState{Epoch: 4, State: record}
		}, want: outcome{epoch: 5, restored: true}},
		{name: "with a record that is not valid", change: func(p *played, _ *sfu.JoinRequest) {
			dead(p)
			p.homes["s"] = p.node("b").Home
			p.states["s"] = roomevent.SessionState{Epoch: 4, State: []byte("x")}
		}, want: outcome{epoch: 5}},
		{name: "the session has moved to c", change: func(p *played, _ *sfu.JoinRequest) {
			dead(p)
			p.homes["s"], p.states["s"] = p.node("c").Home, roomevent.SessionState{Epoch: 6}
		}, want: outcome{node: "c"}},
		{name: "the session has moved to c, which is dead", change: func(p *played, _ *sfu.JoinRequest) {
			p.node("c").State = cluster.Dead
			p.homes["s"], p.states["s"] = p.node("c").Home, roomevent.SessionState{Epoch: 6, State: record}
		}, want: outcome{epoch: 7, restored: true}},
		{name: "an earlier home in the record", change: func(p *played, _ *sfu.JoinRequest) {
			p.homes["s"], p.states["s"] = p.node("c").Home, roomevent.SessionState{Epoch: 3}
		}, want: outcome{node: "b"}},
		{name: "another node has the record", change: func(p *played, _ *sfu.JoinRequest) {
			dead(p)
			p.keepers = []string{"b", "c"}
		}, want: outcome{node: "c"}},
		{name: "this node should have the record", change: func(p *played, _ *sfu.JoinRequest) {
			dead(p)
			p.keepers = []string{"c", "a"}
		}, want: outcome{epoch: 5}},
		{name: "this node drains", change: func(p *played, _ *sfu.JoinRequest) {
			dead(p)
			p.self.Draining = true
		}, want: outcome{node: "c"}},
	} {
		for _, moves := range []bool{false, true} {
			p := newPlayed()
			e := newEntry(t, p)
			q := resumeOf(e.sealed(t, ofSession()), moves)
			if test.change != nil {
				test.change(p, q)
			}
			route, refused := e.Route(q)
			if refused != nil {
				t.Errorf("%s: refused with %v", test.name, refused)
				continue
			}
			got := outcome{node: route.Node, reconnect: route.Reconnect}
			if q.Adopt != nil {
				got.epoch, got.restored = q.Adopt.Epoch, q.Adopt.Record != nil
				if q.Adopt.Session != "s" || q.Adopt.Secret != "inner" || q.Join.Resume.Secret != "inner" ||
					q.Grants != (sfu.Grants{Subscribe: true}) || route.Epoch != got.epoch {
					t.Errorf("%s: adopted with %+v, grants %+v, epoch %d", test.name, q.Adopt, q.Grants, route.Epoch)
				}
			}
			if got != test.want {
				t.Errorf("%s, moves %v: %+v, expected %+v", test.name, moves, got, test.want)
			}
		}
	}
}

// TestResumesHere resumes a session of this node.
func TestResumesHere(t *testing.T) {
	p := newPlayed()
	p.here["s"] = true
	e := newEntry(t, p)
	q := resumeOf(e.sealed(t, ofSession()), true)
	if route, refused := e.Route(q); refused != nil || route.Node != "" || route.Epoch != 4 ||
		q.Join.Resume.Secret != "inner" || q.Adopt != nil {
		t.Errorf("%+v, %v with the secret %q", route, refused, q.Join.Resume.Secret)
	}
	if c := e.Counts(); c.Resumed != 1 {
		t.Errorf("counts %+v", c)
	}
	p.self.Draining = true
	q = resumeOf(e.sealed(t, ofSession()), true)
	if route, refused := e.Route(q); refused != nil || route.Node != "b" || !slices.Equal(p.shared, []string{"s b"}) {
		t.Errorf("while this node drains: %+v, %v, shared %v", route, refused, p.shared)
	}
	q = resumeOf(e.sealed(t, ofSession()), false)
	q.Join.Resume.NewConnection = false
	if route, refused := e.Route(q); refused != nil || route.Node != "" {
		t.Errorf("an old client with its connection while this node drains: %+v, %v", route, refused)
	}
	q = resumeOf(e.sealed(t, ofSession()), false)
	route, refused := e.Route(q)
	if content, err := e.options.Sealer.Open(route.Ticket, time.Now()); refused != nil || route.Node != "b" ||
		err != nil || content.Kind != ticket.Move || content.Home != "b" {
		t.Errorf("an old client without a connection while this node drains: %+v, %v", route, refused)
	}
	p.nodes = nil
	q = resumeOf(e.sealed(t, ofSession()), false)
	if route, refused := e.Route(q); refused != nil || route.Node != "" || q.Adopt != nil {
		t.Errorf("while this node drains alone: %+v, %v", route, refused)
	}
	// The client repeats a ticket of a former home.
	p.homes["s"], p.states["s"] = p.self.Home, roomevent.SessionState{Epoch: 6}
	if route, _ := e.Route(resumeOf(e.sealed(t, ofSession()), false)); route.Epoch != 6 {
		t.Errorf("the epoch is %d, expected 6", route.Epoch)
	}
}

// TestALongSessionIsResumed resumes with a ticket that has expired.
func TestALongSessionIsResumed(t *testing.T) {
	p := newPlayed()
	e := newEntry(t, p)
	content := ofSession()
	content.Expires = time.Now().Add(-time.Hour)
	text, err := e.options.Sealer.Seal(content, time.Now().Add(-2*ticket.Lifetime))
	if err != nil {
		t.Fatal(err)
	}
	if _, refused := e.Route(resumeOf(text, true)); refused == nil || refused.Code != signal.CodeResume {
		t.Errorf("a session that is not on this node: refused with %v", refused)
	}
	if c := e.Counts(); c.Refused.Expired != 1 {
		t.Errorf("counts %+v", c)
	}
	p.here["s"] = true
	q := resumeOf(text, true)
	if route, refused := e.Route(q); refused != nil || route.Node != "" || q.Join.Resume.Secret != "inner" {
		t.Errorf("a session of this node: %+v, %v", route, refused)
	}
	q = resumeOf(text, true)
	q.Identity = "bob"
	if _, refused := e.Route(q); refused == nil {
		t.Error("another participant resumes the session")
	}
	// A drain asks the client of a long session, too.
	o := &outbox{}
	client := signalling.Client{Room: "hall", Session: "s", Ticket: text, Moves: true, Outbox: o}
	if !e.send(time.Now(), client, *p.node("b"), time.Second) {
		t.Error("the client is not asked to move")
	}
	if _, moved := e.opened(t, o.taken()); moved.Session != "s" || moved.Home != "b" {
		t.Errorf("the ticket is %+v", moved)
	}
}

// TestClientsGetFurtherTickets lets a session last longer than the validity of a ticket.
func TestClientsGetFurtherTickets(t *testing.T) {
	p := newPlayed()
	e := newEntry(t, p)
	o, old := connected(e, p, "s", "hall", true), connected(e, p, "t", "hall", false)
	now := time.Now()
	e.sendLists(now.Add(renewAfter - time.Minute))
	if m := o.taken(); m != nil {
		t.Errorf("messages with a ticket that is new: %v", m)
	}
	for _, after := range []time.Duration{renewAfter + time.Minute, 2*renewAfter + 2*time.Minute, 5 * renewAfter} {
		e.sendLists(now.Add(after))
		e.sendLists(now.Add(after + 2*listInterval))
		m := o.taken()
		if len(m) != 1 || len(m[0].(*signal.Nodes).Nodes) != 2 {
			t.Fatalf("messages after %v: %v", after, m)
		}
		got, err := e.options.Sealer.Open(m[0].(*signal.Nodes).Secret, now.Add(after+ticket.Lifetime-time.Minute))
		if err != nil || got.Session != "s" || got.Kind != ticket.Resume {
			t.Errorf("the ticket after %v is %+v, %v", after, got, err)
		}
	}
	if m := old.taken(); m != nil {
		t.Errorf("messages to a client that does not know them: %v", m)
	}
	o.full = true
	p.node("b").Draining = true
	e.sendLists(now.Add(6 * renewAfter))
	o.full = false
	e.sendLists(now.Add(6*renewAfter + 2*listInterval))
	if m := o.taken(); len(m) != 1 || len(m[0].(*signal.Nodes).Nodes) != 1 {
		t.Errorf("messages after one that was not taken: %v", m)
	}
}

// TestOneAddressOfSeveralNodes: an address that leads to any of several nodes is used for none.
func TestOneAddressOfSeveralNodes(t *testing.T) {
	p := newPlayed()
	p.node("b").URL, p.node("c").URL = "wss://sfu", "wss://sfu"
	core, logged := observer.New(zap.ErrorLevel)
	e := newEntry(t, p)
	e.log = zap.New(core)
	if route, refused := e.Route(joinOf("hall", true)); refused != nil || route.Node != "b" || route.URL != "" {
		t.Errorf("the route is %+v, %v", route, refused)
	}
	p.rooms["hall"] = []string{"a", "b"}
	if _, _, err := e.Move("hall", "b"); !errors.Is(err, ErrNode) {
		t.Errorf("a move: %v", err)
	}
	e.reportAddresses()
	if n := logged.Len(); n != 0 {
		t.Errorf("%d errors about addresses of others", n)
	}
	p.self.URL = "wss://sfu"
	e.reportAddresses()
	e.reportAddresses()
	if n := logged.FilterMessageSnippet("same address").Len(); n != 2 {
		t.Errorf("%d errors, expected one for each of b and c", n)
	}
	p.node("b").State, p.node("c").State = cluster.Dead, cluster.Dead
	e.reportAddresses()
	p.node("b").State = cluster.Alive
	e.reportAddresses()
	if n := logged.Len(); n != 3 {
		t.Errorf("%d errors after the return of b, expected 3", n)
	}
}

// TestOriginsOfNodes: the pages of a node may connect to the others.
func TestOriginsOfNodes(t *testing.T) {
	p := newPlayed()
	p.node("c").URL = "ws://192.0.2.1:8080"
	e := newEntry(t, p)
	for origin, want := range map[string]bool{
		"https://b": true, "https://B": true, "http://192.0.2.1:8080": true, "http://b": false, "https://b:8080": false,
		"https://evil.example": false, "": false, "wss://b": false, "http": false,
	} {
		if e.IsNode(origin) != want {
			t.Errorf("the origin %q: expected %t", origin, want)
		}
	}
}

// TestADepartureAsksAllClients steps a drain while the other nodes are full, and after that.
func TestADepartureAsksAllClients(t *testing.T) {
	p := newPlayed()
	p.self.Draining = true
	e := newEntry(t, p)
	var outboxes []*outbox
	for i := range 3 * minBatch {
		outboxes = append(outboxes, connected(e, p, fmt.Sprint(i), "hall", true))
	}
	asked := func() (n int) {
		for _, o := range outboxes {
			o.mu.Lock()
			n += len(o.messages)
			o.mu.Unlock()
		}
		return n
	}
	now := time.Now()
	d := e.newDeparture(now.Add(time.Minute), func(now time.Time, c signalling.Client) (cluster.Node, error) {
		return e.place(now, c.Room, "", ways{moved: c.Moves, proxied: true})
	})
	step := func(staying, total int) {
		t.Helper()
		if n := d.step(now, p.Clients()); n != staying || asked() != total {
			t.Errorf("%d stay, %d are asked, expected %d and %d", n, asked(), staying, total)
		}
		now = now.Add(batchInterval)
	}
	p.node("b").Load, p.node("c").Load = 0.9, 0.9
	step(12, 0)
	p.node("b").Load, p.node("c").Load = 0.1, 0.1
	step(12, 4)
	now = now.Add(-batchInterval / 2)
	step(12, 4)
	now = now.Add(batchInterval / 2)
	step(12, 8)
	// A client that has joined meanwhile is asked, too.
	outboxes = append(outboxes, connected(e, p, "late", "hall", true))
	step(13, 12)
	step(13, 13)
	p.clients = p.clients[:1]
	step(1, 13)
	p.clients = nil
	step(0, 13)
	// Without other nodes, all stay.
	for i := range 3 * minBatch {
		connected(e, p, "x"+fmt.Sprint(i), "hall", i%2 == 0)
	}
	p.nodes = nil
	step(0, 13)
}

// TestAClientThatComesBackIsAdopted: the client was sent to a home that is dead, which this node does not know yet.
func TestAClientThatComesBackIsAdopted(t *testing.T) {
	p := newPlayed()
	e := newEntry(t, p)
	text := e.sealed(t, ofSession())
	if route, _ := e.Route(resumeOf(text, true)); route.Node != "b" || route.Ticket != text {
		t.Fatalf("the route is %+v", route)
	}
	q := resumeOf(text, true)
	if route, _ := e.Route(q); route.Node != "" || q.Adopt == nil {
		t.Errorf("the second route is %+v", route)
	}
	if route, _ := e.Route(resumeOf(text, true)); route.Node != "b" {
		t.Errorf("the third route is %+v", route)
	}
	for i := range 2 * maxReturned {
		other := resumeOf(text, true)
		other.Join.Resume.Session = fmt.Sprint(i)
		e.sent(time.Now(), other)
	}
	if len(e.returned) > maxReturned {
		t.Errorf("%d sessions are remembered", len(e.returned))
	}
}

// TestForeignTickets resumes with tickets of others.
func TestForeignTickets(t *testing.T) {
	p := newPlayed()
	p.here["s"] = true
	e := newEntry(t, p)
	other, err := ticket.NewSealer(bytes.Repeat([]byte{2}, ticket.SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := other.Seal(ofSession(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ofTicket := func(change func(*ticket.Ticket)) string {
		content := ofSession()
		change(&content)
		return e.sealed(t, content)
	}
	for name, text := range map[string]string{
		"another cluster":     foreign,
		"a secret":            "RZ4LX6TQM2HVKD7NPCWBY3JGEA",
		"nothing":             "",
		"another session":     ofTicket(func(c *ticket.Ticket) { c.Session = "t" }),
		"another room":        ofTicket(func(c *ticket.Ticket) { c.Room = "attic" }),
		"another identity":    ofTicket(func(c *ticket.Ticket) { c.Identity = "bob" }),
		"a ticket for a join": ofTicket(func(c *ticket.Ticket) { c.Kind = ticket.Entry }),
		"an unknown kind":     ofTicket(func(c *ticket.Ticket) { c.Kind = 9 }),
	} {
		q := resumeOf(text, true)
		if _, refused := e.Route(q); refused == nil || refused.Code != signal.CodeResume || q.Adopt != nil {
			t.Errorf("%s: refused with %v", name, refused)
		}
	}
	if c := e.Counts(); c.Refused.Expired != 0 || c.Refused.Ticket != 8 {
		t.Errorf("counts %+v", c)
	}
	delete(p.here, "s")
	q := resumeOf(ofTicket(func(c *ticket.Ticket) { c.Home = "a" }), true)
	if _, refused := e.Route(q); refused == nil || refused.Code != signal.CodeResume {
		t.Errorf("a session of this node that has ended: refused with %v", refused)
	}
}

// TestMoveTickets continues a session on the node that a ticket names, although the home is alive.
func TestMoveTickets(t *testing.T) {
	p := newPlayed()
	e := newEntry(t, p)
	p.homes["s"], p.states["s"] = p.node("b").Home, roomevent.SessionState{Epoch: 4, State: record}
	move := ofSession()
	move.Kind, move.Home, move.Incarnation = ticket.Move, "a", 1
	q := resumeOf(e.sealed(t, move), true)
	if route, refused := e.Route(q); refused != nil || route.Node != "" || q.Adopt == nil || q.Adopt.Epoch != 5 ||
		q.Adopt.Record == nil {
		t.Errorf("%+v, %v", route, refused)
	}
	move.Home = "c"
	q = resumeOf(e.sealed(t, move), true)
	if route, refused := e.Route(q); refused != nil || route.Node != "b" {
		t.Errorf("on another node than that of the ticket: %+v, %v", route, refused)
	}
}

// TestWelcome checks the ticket and the alternatives of a reply to a join.
func TestWelcome(t *testing.T) {
	p := newPlayed()
	p.self.Region, p.keepers = "us", []string{"e"}
	p.nodes = []cluster.Node{nodeOf("b", "eu", 0), nodeOf("c", "us", 0), nodeOf("d", "us", 0), nodeOf("e", "eu", 0)}
	p.node("d").Draining = true
	e := newEntry(t, p)
	joined := &signal.Joined{Session: "s", Room: "hall", Identity: "ann", Resume: signal.ResumeGrant{Secret: "inner"}}
	e.Welcome(joined, sfu.Grants{Subscribe: true, Admin: true}, 3)
	got, err := e.options.Sealer.Open(joined.Resume.Secret, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	got.Expires = time.Time{}
	want := ticket.Ticket{Kind: ticket.Resume, Session: "s", Secret: "inner", Room: "hall", Identity: "ann",
		Grants: ticket.Subscribe | ticket.Admin, Home: "a", Incarnation: 1, Epoch: 3}
	if got != want {
		t.Errorf("the ticket is %+v, expected %+v", got, want)
	}
	list := []signal.NodeAddress{
		{URL: "wss://e", Region: "eu"}, {URL: "wss://c", Region: "us"}, {URL: "wss://b", Region: "eu"},
	}
	if !slices.Equal(joined.Nodes, list) {
		t.Errorf("the nodes are %v, expected %v", joined.Nodes, list)
	}
	if g := grantsOf(bitsOf(sfu.Grants{Publish: true, Data: true})); g != (sfu.Grants{Publish: true, Data: true}) {
		t.Errorf("the grants are %+v", g)
	}
}

// outbox keeps the messages for a client. If full is set, it takes none.
type outbox struct {
	mu       sync.Mutex
	messages []signal.Message
	code     signal.Code
	full     bool
}

func (o *outbox) Send(m signal.Message) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.full {
		o.messages = append(o.messages, m)
	}
	return !o.full
}

func (o *outbox) Close(code signal.Code, _ string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.code = code
}

func (o *outbox) closed() signal.Code {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.code
}

func (o *outbox) taken() []signal.Message {
	o.mu.Lock()
	defer o.mu.Unlock()
	messages := o.messages
	o.messages = nil
	return messages
}

// connected adds a client that has joined the room.
func connected(e *Entry, p *played, session, room string, moves bool) *outbox {
	joined := &signal.Joined{Session: session, Room: room, Identity: "ann " + session}
	e.Welcome(joined, sfu.Grants{Subscribe: true}, 0)
	o := &outbox{}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients = append(p.clients, signalling.Client{Room: room, Identity: "ann " + session, Session: session,
		Ticket: joined.Resume.Secret, Moves: moves, Outbox: o})
	return o
}

// TestClientsAreToldOfChanges checks the messages nodes.
func TestClientsAreToldOfChanges(t *testing.T) {
	p := newPlayed()
	e := newEntry(t, p)
	o, old := connected(e, p, "s", "hall", true), connected(e, p, "t", "hall", false)
	now := time.Now()
	tell := func() {
		now = now.Add(listInterval)
		e.sendLists(now)
	}
	tell()
	if m := o.taken(); m != nil {
		t.Errorf("messages without a change: %v", m)
	}
	p.node("b").Draining = true
	tell()
	tell()
	want := []signal.NodeAddress{{URL: "wss://c", Region: "eu"}}
	if m := o.taken(); len(m) != 1 || !slices.Equal(m[0].(*signal.Nodes).Nodes, want) {
		t.Errorf("messages after a change: %v", m)
	}
	p.node("b").Load = 0.5
	tell()
	p.nodes = append(p.nodes, nodeOf("d", "eu", 0))
	p.node("d").State = cluster.Dead
	tell()
	if m := o.taken(); m != nil {
		t.Errorf("messages after changes that do not concern clients: %v", m)
	}
	p.nodes = nil
	tell()
	p.nodes = []cluster.Node{nodeOf("b", "eu", 0)}
	e.sendLists(now.Add(listInterval / 2))
	if m := o.taken(); len(m) != 1 || len(m[0].(*signal.Nodes).Nodes) != 0 {
		t.Errorf("messages without other nodes: %v", m)
	}
	if m := old.taken(); m != nil {
		t.Errorf("messages to a client that does not follow: %v", m)
	}
	p.clients = nil
	tell()
	if len(e.lists.sessions) != 0 || len(e.lists.rooms) != 0 {
		t.Errorf("remembered: %+v", e.lists)
	}
}

// opened returns the ticket of a message Moved.
func (e *Entry) opened(t *testing.T, messages []signal.Message) (*signal.Moved, ticket.Ticket) {
	t.Helper()
	if len(messages) != 1 {
		t.Fatalf("messages %v, expected one", messages)
	}
	moved := messages[0].(*signal.Moved)
	content, err := e.options.Sealer.Open(moved.Ticket, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return moved, content
}

// TestDrain moves the clients that follow and waits until they have left.
func TestDrain(t *testing.T) {
	p := newPlayed()
	e := newEntry(t, p)
	follower, old := connected(e, p, "s", "hall", true), connected(e, p, "t", "hall", false)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ctx, cancel := context.WithTimeout(t.Context(), 2*wait.Patience)
		defer cancel()
		e.Drain(ctx)
	}()
	var messages []signal.Message
	wait.Until(t, "the client is asked to move", func() bool {
		messages = append(messages, follower.taken()...)
		return len(messages) > 0
	})
	moved, content := e.opened(t, messages)
	if moved.URL != "wss://b" || !moved.MakeBeforeBreak || moved.DeadlineMS < 1 {
		t.Errorf("moved %+v", moved)
	}
	if content.Kind != ticket.Move || content.Home != "b" || content.Session != "s" {
		t.Errorf("the ticket is %+v", content)
	}
	select {
	case <-ended:
		t.Error("the drain ends before the client has left")
	default:
	}
	p.mu.Lock()
	p.clients = p.clients[1:]
	p.mu.Unlock()
	<-ended
	// A client that does not follow resumes with a new connection, which this node sends to the other node.
	if m := old.taken(); m != nil || old.closed() != signal.CodeConnection {
		t.Errorf("messages to a client that does not follow: %v, the websocket ends with %q", m, old.closed())
	}
	slices.Sort(p.shared)
	if !p.draining || p.ended != signal.CodeDraining || p.told != 1 || !slices.Equal(p.shared, []string{"s b", "t b"}) {
		t.Errorf("draining %v, proxies end with %q, told %d times, shared %v", p.draining, p.ended, p.told, p.shared)
	}
	// A client that does not leave.
	connected(e, p, "u", "hall", true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	e.Drain(ctx)
	// Without other nodes, a drain asks no client.
	p.nodes = nil
	e.Drain(t.Context())
}

// TestMove moves the clients of one room.
func TestMove(t *testing.T) {
	p := newPlayed()
	p.rooms["hall"] = []string{"a", "b"}
	e := newEntry(t, p)
	o, elsewhere := connected(e, p, "s", "hall", true), connected(e, p, "t", "attic", true)
	connected(e, p, "u", "hall", false)
	defer e.Close()
	if n, remaining, err := e.Move("hall", "c"); n != 1 || remaining != 1 || err != nil {
		t.Errorf("moved %d, %d remain, %v", n, remaining, err)
	}
	var messages []signal.Message
	wait.Until(t, "the client is asked to move", func() bool {
		messages = append(messages, o.taken()...)
		return len(messages) > 0
	})
	moved, content := e.opened(t, messages)
	if moved.URL != "wss://c" || content.Home != "c" || elsewhere.taken() != nil {
		t.Errorf("moved %+v, ticket %+v", moved, content)
	}
	p.node("b").Draining = true
	p.nodes = append(p.nodes, nodeOf("d", "", 0), nodeOf("e", "", 0))
	p.node("d").State, p.node("e").URL = cluster.Dead, ""
	for _, test := range []struct {
		room, node string
		want       error
		text       string
	}{
		{"hall", "a", ErrNode, "this node"}, {"hall", "b", ErrNode, "drains"}, {"hall", "d", ErrNode, "answer"},
		{"hall", "e", ErrNode, "address"}, {"hall", "x", ErrNode, "no node"},
		{"cellar", "c", sfu.ErrNotFound, "cellar"},
	} {
		if n, _, err := e.Move(test.room, test.node); n != 0 || !errors.Is(err, test.want) ||
			!strings.Contains(err.Error(), test.text) {
			t.Errorf("%s to %s: %d, %v", test.room, test.node, n, err)
		}
	}
}

// TestMoveBesideClose moves clients while the node stops. No goroutine starts after Close.
func TestMoveBesideClose(t *testing.T) {
	p := newPlayed()
	p.rooms["hall"] = []string{"a", "b"}
	e := newEntry(t, p)
	connected(e, p, "s", "hall", true)
	var moving sync.WaitGroup
	for range 4 {
		moving.Go(func() {
			for {
				if _, _, err := e.Move("hall", "c"); err != nil {
					if !errors.Is(err, ErrNode) || !strings.Contains(err.Error(), "is about to stop") {
						t.Errorf("the error is %v", err)
					}
					return
				}
			}
		})
	}
	e.Close()
	moving.Wait()
}

// TestJoinsBesideLists lets clients join while lists are sent, and checks that none gets a list twice.
func TestJoinsBesideLists(t *testing.T) {
	p := newPlayed()
	e := newEntry(t, p)
	const clients = 50
	outboxes := make(chan *outbox, clients)
	var joining sync.WaitGroup
	joining.Go(func() {
		defer close(outboxes)
		for n := range clients {
			outboxes <- connected(e, p, strconv.Itoa(n), "hall", true)
		}
	})
	now := time.Now()
	for range 100 {
		now = now.Add(listInterval)
		e.sendLists(now)
	}
	joining.Wait()
	e.sendLists(now.Add(listInterval))
	for o := range outboxes {
		if m := o.taken(); m != nil {
			t.Fatalf("messages without a change: %v", m)
		}
	}
}
