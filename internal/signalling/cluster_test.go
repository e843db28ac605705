package signalling

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/test/wait"
)

// playedCluster is a Cluster with one route for all joins.
type playedCluster struct {
	// mu guards address in tests that change the address.
	mu      sync.Mutex
	route   Route
	refused *signal.Error
	// address is that of all other nodes, config for connections to them, nil without TLS.
	address string
	config  *tls.Config
	// secret replaces the secrets of resumes that this node handles.
	secret string
}

// Route implements Cluster.
func (p *playedCluster) Route(q *sfu.JoinRequest) (Route, *signal.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.route.Node == "" && q.Join.Resume != nil && p.secret != "" {
		q.Join.Resume.Secret = p.secret
	}
	return p.route, p.refused
}

// Welcome implements Cluster.
func (p *playedCluster) Welcome(joined *signal.Joined, grants sfu.Grants, epoch uint64) {
	if !grants.Subscribe {
		panic("the grants of the token are missing")
	}
	joined.Resume.Secret = "ticket around " + joined.Resume.Secret
	joined.Nodes = []signal.NodeAddress{{URL: "wss://other"}}
}

// IsNode implements Cluster.
func (p *playedCluster) IsNode(origin string) bool { return origin == "https://other" }

// Dial implements Cluster.
func (p *playedCluster) Dial(ctx context.Context, node string) (net.Conn, error) {
	p.mu.Lock()
	address := p.address
	p.mu.Unlock()
	if p.config == nil {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	config := p.config.Clone()
	config.ServerName = node
	return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
}

// byToken is an Authenticator of the one token "right".
type byToken struct{}

// Authenticate implements Authenticator.
func (byToken) Authenticate(r *http.Request) (Credentials, error) {
	token := r.URL.Query().Get("access_token")
	if header := r.Header.Get("Authorization"); header != "" {
		token = strings.TrimPrefix(header, "Bearer ")
	}
	if token != "right" {
		return Credentials{}, errors.New("wrong token")
	}
	return Credentials{Room: "hall", Grants: sfu.Grants{Subscribe: true}}, nil
}

// welcomingNode is a node whose rooms reply to joins, and that passes the outbox of each client to the test.
type welcomingNode struct {
	*playedNode
	outboxes chan sfu.Outbox
}

func newWelcomingNode() *welcomingNode {
	n := newPlayedNode(nil)
	n.messages = make(chan signal.Message, 1000)
	return &welcomingNode{n, make(chan sfu.Outbox, 1)}
}

// Join implements Node.
func (n *welcomingNode) Join(q sfu.JoinRequest) (Session, *signal.Error) {
	q.Outbox.Send(&signal.Joined{
		Header: signal.Header{ID: q.Join.ID}, Version: signal.Version, Room: q.Room, Identity: q.Identity,
		Session: "session", Resume: signal.ResumeGrant{Secret: "secret"},
	})
	n.outboxes <- q.Outbox
	return n.playedNode.Join(q)
}

// TestClientsAreListedAsTheyJoin receives the reply to a join before the room has returned. The client is in the list
// of clients that a drain asks to move.
func TestClientsAreListedAsTheyJoin(t *testing.T) {
	rooms := newWelcomingNode()
	rooms.outboxes = make(chan sfu.Outbox)
	server := node(t, DefaultConfig(), rooms, &playedCluster{})
	c := connect(t, listen(t, server, false), false)
	c.send(entryOf(true))
	next[*signal.Joined](c)
	if list := server.Clients(); len(list) != 1 || list[0].Session != "session" || !list[0].Moves ||
		list[0].Ticket != "ticket around secret" {
		t.Errorf("clients %+v, expected the one that has joined", list)
	}
	within(t, "the outbox", rooms.outboxes)
}

// node starts a node of a cluster. Its tests' end waits for all requests.
func node(t *testing.T, config Config, rooms Node, cluster Cluster) *Server {
	t.Helper()
	s, err := NewServer(config, nodesByRoom{"hall": rooms}, byToken{}, uncounted{}, NewLog(zap.NewNop()), false)
	if err != nil {
		t.Fatal(err)
	}
	if cluster != nil {
		s.SetCluster(cluster)
	}
	return s
}

// listen serves a handler and waits at the end of the test until every request has ended, although the connections of
// websockets are not the HTTP server's any more.
func listen(t *testing.T, handler http.Handler, secure bool) *httptest.Server {
	t.Helper()
	var requests sync.WaitGroup
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		defer requests.Done()
		handler.ServeHTTP(w, r)
	}))
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(func() {
		server.Close()
		ended := make(chan struct{})
		go func() {
			requests.Wait()
			close(ended)
		}()
		within(t, "the end of all requests", ended)
	})
	return server
}

// testClient is a client of the test.
type testClient struct {
	t    *testing.T
	conn *websocket.Conn
}

// connect opens a websocket with the right token in the header or in the query.
func connect(t *testing.T, server *httptest.Server, query bool) *testClient {
	t.Helper()
	address, header := "ws"+strings.TrimPrefix(server.URL, "http"), http.Header{}
	if query {
		address += "?access_token=right"
	} else {
		header.Set("Authorization", "Bearer right")
	}
	conn, answer, err := websocket.DefaultDialer.Dial(address, header)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	t.Cleanup(func() { _ = conn.Close() })
	return &testClient{t, conn}
}

func (c *testClient) send(m signal.Message) {
	c.t.Helper()
	text, err := signal.Encode(m)
	if err == nil {
		err = c.conn.WriteMessage(websocket.TextMessage, text)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// next returns the next message, which has the type M.
func next[M signal.Message](c *testClient) M {
	c.t.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(wait.Patience))
	_, text, err := c.conn.ReadMessage()
	if err != nil {
		c.t.Fatal(err)
	}
	m, err := signal.DecodeFromServer(text)
	if err != nil {
		c.t.Fatal(err)
	}
	wanted, ok := m.(M)
	if !ok {
		c.t.Fatalf("the server sends %s, expected a %T", text, wanted)
	}
	return wanted
}

// closeReason waits for the end of the websocket and returns its reason.
func (c *testClient) closeReason() string {
	c.t.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(wait.Patience))
	_, text, err := c.conn.ReadMessage()
	var closed *websocket.CloseError
	if !errors.As(err, &closed) {
		c.t.Fatalf("got %q, %v, expected the end of the websocket", text, err)
	}
	return closed.Text
}

func entryOf(moves bool) *signal.Join {
	return &signal.Join{
		Header: signal.Header{ID: "1"}, Version: signal.Version, Identity: "ann", Receive: true, Moves: moves,
	}
}

// TestAClientThatMovesIsSentToTheNode also checks that other replies of the cluster reach the client.
func TestAClientThatMovesIsSentToTheNode(t *testing.T) {
	t.Parallel()
	cluster := &playedCluster{route: Route{Node: "home", URL: "wss://home", Ticket: "ticket"}, address: "127.0.0.1:1"}
	server := listen(t, node(t, DefaultConfig(), newWelcomingNode(), cluster), false)
	c := connect(t, server, false)
	c.send(entryOf(true))
	if m := next[*signal.Moved](c); m.ID != "1" || m.URL != "wss://home" || m.Ticket != "ticket" {
		t.Errorf("moved with %+v", m)
	}
	if reason := c.closeReason(); reason != "" {
		t.Errorf("the websocket ends for %q", reason)
	}
	other := connect(t, server, false)
	other.send(entryOf(false))
	if e := next[*signal.Error](other); e.ID != "1" || e.Code != signal.CodeInternal || e.RetryAfterMS == 0 {
		t.Errorf("a node that cannot be reached: %+v", e)
	}
	full := &playedCluster{refused: &signal.Error{Code: signal.CodeLimit, Message: "full", RetryAfterMS: 1000}}
	third := connect(t, listen(t, node(t, DefaultConfig(), newWelcomingNode(), full), false), false)
	third.send(entryOf(true))
	if e := next[*signal.Error](third); e.ID != "1" || e.Code != signal.CodeLimit || e.RetryAfterMS != 1000 {
		t.Errorf("a full cluster: %+v", e)
	}
}

// TestOtherClientsAreProxied connects a client without moves by way of an entry node, with and without TLS between the
// nodes, with the token in the header and in the query.
func TestOtherClientsAreProxied(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		rooms := newWelcomingNode()
		// The home would choose another node, which it must not for a client that is proxied.
		home := node(t, DefaultConfig(), rooms, &playedCluster{route: Route{Node: "third"}, address: "127.0.0.1:1"})
		proxied := listen(t, home.Proxied(), secure)
		cluster := &playedCluster{
			route: Route{Node: "example.com", URL: "wss://home"}, address: proxied.Listener.Addr().String(),
		}
		if secure {
			cluster.config = proxied.Client().Transport.(*http.Transport).TLSClientConfig
		}
		entry := node(t, DefaultConfig(), newWelcomingNode(), cluster)
		c := connect(t, listen(t, entry, false), secure)
		c.send(entryOf(false))
		if m := next[*signal.Joined](c); m.Identity != "ann" || m.Resume.Secret != "ticket around secret" ||
			len(m.Nodes) != 1 {
			t.Errorf("joined %+v", m)
		}
		q := within(t, "the join", rooms.joined)
		if q.Room != "hall" || !q.Grants.Subscribe {
			t.Errorf("%s joins room %s with the grants %+v", q.Identity, q.Room, q.Grants)
		}
		list := home.Clients()
		if len(list) != 1 || list[0].Session != "session" || list[0].Moves || len(entry.Clients()) != 0 {
			t.Errorf("clients of the home %+v, of the entry %+v", list, entry.Clients())
		}
		for i := range int64(100) {
			c.send(&signal.Time{T0: i})
		}
		for i := range int64(100) {
			if m := within(t, "a message", rooms.messages).(*signal.Time); m.T0 != i {
				t.Fatalf("message %d is %+v", i, m)
			}
		}
		outbox := within(t, "the outbox", rooms.outboxes)
		long := strings.Repeat("x", 1<<20)
		outbox.Send(&signal.Offer{Offer: 1, SDP: long})
		if m := next[*signal.Offer](c); m.SDP != long {
			t.Errorf("the offer has %d bytes, expected %d", len(m.SDP), len(long))
		}
		outbox.Close(signal.CodeKicked, "go away")
		if m := next[*signal.Closing](c); m.Code != signal.CodeKicked {
			t.Errorf("closing %+v", m)
		}
		if reason := c.closeReason(); reason != string(signal.CodeKicked) {
			t.Errorf("the websocket ends for %q", reason)
		}
		within(t, "the end of the session", rooms.detached)
		wait.Until(t, "the client is forgotten", func() bool { return len(home.Clients()) == 0 })
	}
}

// TestAProxiedClientThatLeavesIsDetached ends the websockets of both sides when one ends.
func TestAProxiedClientThatLeavesIsDetached(t *testing.T) {
	t.Parallel()
	for _, end := range []func(c *testClient, proxied *httptest.Server){
		func(c *testClient, _ *httptest.Server) { _ = c.conn.NetConn().Close() },
		func(c *testClient, _ *httptest.Server) {
			// Longer than any message may be.
			_ = c.conn.WriteMessage(websocket.TextMessage, make([]byte, DefaultConfig().MessageBytes+1))
			if e := next[*signal.Error](c); e.Code != signal.CodeTooLarge {
				t.Errorf("error %+v", e)
			}
		},
	} {
		rooms := newWelcomingNode()
		proxied := listen(t, node(t, DefaultConfig(), rooms, &playedCluster{}).Proxied(), false)
		cluster := &playedCluster{route: Route{Node: "home"}, address: proxied.Listener.Addr().String()}
		c := connect(t, listen(t, node(t, DefaultConfig(), newWelcomingNode(), cluster), false), false)
		c.send(entryOf(true)) // The home has no address for clients.
		next[*signal.Joined](c)
		end(c, proxied)
		within(t, "the end of the session", rooms.detached)
	}
}

// TestAClientThatDoesNotReadEndsTheProxy sends more than the buffers of both connections hold.
func TestAClientThatDoesNotReadEndsTheProxy(t *testing.T) {
	t.Parallel()
	config := DefaultConfig()
	// A shorter time may pass between the setting of the deadline and the write on a busy machine.
	config.WriteTimeout = 2 * time.Second
	rooms := newWelcomingNode()
	proxied := listen(t, node(t, DefaultConfig(), rooms, &playedCluster{}).Proxied(), false)
	cluster := &playedCluster{route: Route{Node: "home"}, address: proxied.Listener.Addr().String()}
	c := connect(t, listen(t, node(t, config, newWelcomingNode(), cluster), false), false)
	c.send(entryOf(false))
	next[*signal.Joined](c)
	outbox := within(t, "the outbox", rooms.outboxes)
	offer := &signal.Offer{Offer: 1, SDP: strings.Repeat("x", 1<<20)}
	for range 100 {
		outbox.Send(offer)
	}
	within(t, "the end of the session", rooms.detached)
}

// TestForeignProxiesAreRefused calls the handler for other nodes without an address and with a wrong token.
func TestForeignProxiesAreRefused(t *testing.T) {
	t.Parallel()
	proxied := listen(t, node(t, DefaultConfig(), newWelcomingNode(), &playedCluster{}).Proxied(), false)
	for _, test := range []struct {
		address, token string
		status         int
	}{
		{"", "right", http.StatusBadRequest},
		{"somewhere", "right", http.StatusBadRequest},
		{"192.0.2.1:7", "wrong", http.StatusUnauthorized},
	} {
		header := http.Header{clientHeader: {test.address}, "Authorization": {"Bearer " + test.token}}
		_, answer, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(proxied.URL, "http"), header)
		if err == nil || answer == nil || answer.StatusCode != test.status {
			t.Errorf("%+v: got %v, %v", test, answer, err)
		}
	}
}

// TestResumesOnAForeignNode checks what a client is told whose session this node has taken over.
func TestResumesOnAForeignNode(t *testing.T) {
	t.Parallel()
	rooms := newWelcomingNode()
	cluster := &playedCluster{route: Route{Reconnect: true, Grace: 15 * time.Second}, secret: "inner"}
	server := listen(t, node(t, DefaultConfig(), rooms, cluster), false)
	resume := entryOf(false)
	resume.Resume = &signal.ResumeRequest{Session: "session", Secret: "ticket"}
	cluster.secret = ""
	c := connect(t, server, false)
	c.send(resume)
	joined := next[*signal.Joined](c)
	if !joined.Resumed || joined.Session != "session" || joined.Resume.Secret != "ticket" ||
		joined.Resume.GraceMS != 15000 || joined.Room != "hall" || joined.Identity != "ann" {
		t.Errorf("joined %+v", joined)
	}
	if m := next[*signal.Closing](c); m.Code != signal.CodeConnection || m.GraceMS != 0 {
		t.Errorf("closing %+v", m)
	}
	if reason := c.closeReason(); reason != string(signal.CodeConnection) {
		t.Errorf("the websocket ends for %q", reason)
	}
	cluster.secret = "inner"
	again := connect(t, server, false)
	resume.Resume.NewConnection = true
	again.send(resume)
	if joined := next[*signal.Joined](again); joined.Resume.Secret != "ticket around secret" {
		t.Errorf("joined %+v", joined)
	}
	if q := within(t, "the resume", rooms.joined); q.Join.Resume.Secret != "inner" {
		t.Errorf("the node gets the secret %q", q.Join.Resume.Secret)
	}
}

// TestADialEndsWithItsClient joins by way of a node that accepts the connection and says nothing, and leaves.
func TestADialEndsWithItsClient(t *testing.T) {
	t.Parallel()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	config := DefaultConfig()
	config.DialTimeout = 10 * wait.Patience
	entry := node(t, config, newWelcomingNode(),
		&playedCluster{route: Route{Node: "home"}, address: mute.Addr().String()})
	c := connect(t, listen(t, entry, false), false)
	c.send(entryOf(false))
	dialed, err := mute.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer dialed.Close()
	if p := entry.Proxies(); p.Entry != 1 {
		t.Errorf("proxies %+v", p)
	}
	_ = c.conn.NetConn().Close()
	_ = dialed.SetReadDeadline(time.Now().Add(wait.Patience))
	if _, err := io.Copy(io.Discard, dialed); err != nil {
		t.Errorf("the dial goes on without its client: %v", err)
	}
	wait.Until(t, "the proxy ends", func() bool { return entry.Proxies() == (Proxies{}) })
}

// TestAClientTriesAgainAfterItsNodeWasNotReached joins twice on one websocket.
func TestAClientTriesAgainAfterItsNodeWasNotReached(t *testing.T) {
	t.Parallel()
	rooms := newWelcomingNode()
	proxied := listen(t, node(t, DefaultConfig(), rooms, &playedCluster{}).Proxied(), false)
	cluster := &playedCluster{route: Route{Node: "home"}, address: "127.0.0.1:1"}
	entry := node(t, DefaultConfig(), newWelcomingNode(), cluster)
	c := connect(t, listen(t, entry, false), false)
	c.send(entryOf(false))
	if e := next[*signal.Error](c); e.Code != signal.CodeInternal || e.RetryAfterMS == 0 {
		t.Errorf("error %+v", e)
	}
	if p := entry.Proxies(); p.Unreachable != 1 {
		t.Errorf("proxies %+v", p)
	}
	cluster.mu.Lock()
	cluster.address = proxied.Listener.Addr().String()
	cluster.mu.Unlock()
	c.send(entryOf(false))
	next[*signal.Joined](c)
	within(t, "the join", rooms.joined)
	// A message closing would end the session of clients that do not know other nodes.
	entry.EndProxies(signal.CodeDraining)
	if reason := c.closeReason(); reason != string(signal.CodeDraining) {
		t.Errorf("the websocket ends for %q", reason)
	}
	within(t, "the end of the session's websocket", rooms.detached)
}

// TestProxiesAreLimited fills the places of both sides.
func TestProxiesAreLimited(t *testing.T) {
	t.Parallel()
	home := node(t, DefaultConfig(), newWelcomingNode(), &playedCluster{})
	home.proxies.home.Add(maxProxied)
	proxied := listen(t, home.Proxied(), false)
	entry := node(t, DefaultConfig(), newWelcomingNode(),
		&playedCluster{route: Route{Node: "home"}, address: proxied.Listener.Addr().String()})
	server := listen(t, entry, false)
	c := connect(t, server, false)
	c.send(entryOf(false))
	if e := next[*signal.Error](c); e.Code != signal.CodeRateLimited {
		t.Errorf("error %+v", e)
	}
	for range maxProxied {
		entry.beginProxy(&client{})
	}
	other := connect(t, server, false)
	other.send(entryOf(false))
	if e := next[*signal.Error](other); e.Code != signal.CodeLimit || e.RetryAfterMS == 0 {
		t.Errorf("error %+v", e)
	}
}

// TestAClientWhoseNodeWasNotReachedHasTheTimeOfAJoin joins once and sends nothing more.
func TestAClientWhoseNodeWasNotReachedHasTheTimeOfAJoin(t *testing.T) {
	t.Parallel()
	config := DefaultConfig()
	config.JoinTimeout = time.Second
	entry := node(t, config, newWelcomingNode(), &playedCluster{route: Route{Node: "home"}, address: "127.0.0.1:1"})
	c := connect(t, listen(t, entry, false), false)
	c.send(entryOf(false))
	if e := next[*signal.Error](c); e.Code != signal.CodeInternal {
		t.Errorf("error %+v", e)
	}
	if p := entry.Proxies(); p.Entry != 0 {
		t.Errorf("proxies %+v while the client may join again", p)
	}
	// The pongs that the client sends meanwhile do not count.
	c.closeReason()
}

// TestPagesOfOtherNodesConnect opens websockets with the origins of pages.
func TestPagesOfOtherNodesConnect(t *testing.T) {
	t.Parallel()
	server := listen(t, node(t, DefaultConfig(), newWelcomingNode(), &playedCluster{}), false)
	for origin, status := range map[string]int{
		"https://other": http.StatusSwitchingProtocols, "https://evil.example": http.StatusForbidden,
	} {
		header := http.Header{"Authorization": {"Bearer right"}, "Origin": {origin}}
		conn, answer, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http"), header)
		if answer == nil || answer.StatusCode != status {
			t.Errorf("a page of %s: %v, %v", origin, answer, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
}

// TestAProxiedResumeHasTheTicketOfTheRoute also checks that keys that the entry node does not know are kept.
func TestAProxiedResumeHasTheTicketOfTheRoute(t *testing.T) {
	t.Parallel()
	rooms := newWelcomingNode()
	proxied := listen(t, node(t, DefaultConfig(), rooms, &playedCluster{}).Proxied(), false)
	cluster := &playedCluster{
		route: Route{Node: "home", Ticket: "for home"}, address: proxied.Listener.Addr().String(),
	}
	c := connect(t, listen(t, node(t, DefaultConfig(), newWelcomingNode(), cluster), false), false)
	resume := entryOf(false)
	resume.Resume = &signal.ResumeRequest{Session: "session", Secret: "of the client", NewConnection: true}
	c.send(resume)
	next[*signal.Joined](c)
	q := within(t, "the resume", rooms.joined)
	if r := q.Join.Resume; r.Secret != "for home" || r.Session != "session" || !r.NewConnection {
		t.Errorf("the node gets the resume %+v", r)
	}
	for text, want := range map[string]string{
		`{"type":"join","later":[1],"resume":{"later":true,"secret":"a"}}`: `{"later":[1],"resume":` +
			`{"later":true,"secret":"b\""},"type":"join"}`,
		`{"type":"join"}`:                `{"type":"join"}`,
		`{"type":"join","resume":null}`:  `{"type":"join","resume":null}`,
		`{"type":"join","resume":["a"]}`: `{"type":"join","resume":["a"]}`,
		`no JSON`:                        `no JSON`,
	} {
		if got := withSecret([]byte(text), `b"`); string(got) != want {
			t.Errorf("%s becomes %s, expected %s", text, got, want)
		}
	}
}
