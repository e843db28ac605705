package signalling

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/signal"
)

// clientHeader names the address of a client whose websocket another node passes on.
const clientHeader = "Volsfu-Client"

const (
	// dialTimeout bounds the opening of a websocket to another node: some round trips between continents.
	dialTimeout = 5 * time.Second
	// retryAfterMS is the time after which a client may try again if another node is not reached: about the time in
	// which a cluster notices that a node is dead.
	retryAfterMS = 1000
	// maxPassages is the number of websockets that a node passes on, and of those that it accepts from other nodes.
	// Each has two sockets and three goroutines on the entry node.
	maxPassages = 4096
)

// Passed returns the handler of websockets that other nodes pass on. Only nodes of the cluster may reach the handler:
// it trusts the client's address that the other node names. The client's token is checked as usual.
func (s *Server) Passed() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address, err := netip.ParseAddrPort(r.Header.Get(clientHeader))
		if err != nil {
			text := string(signal.CodeInvalid) + ": the header " + clientHeader + " has no address"
			http.Error(w, text, http.StatusBadRequest)
			return
		}
		defer s.passed.Add(-1)
		if s.passed.Add(1) > maxPassages {
			text := fmt.Sprintf("%s: other nodes pass on the maximum of %d websockets", signal.CodeRateLimited,
				maxPassages)
			http.Error(w, text, http.StatusTooManyRequests)
			return
		}
		named := *r
		named.RemoteAddr = address.String()
		s.serve(w, &named, true)
	})
}

// Passages are the websockets that are passed on between nodes.
type Passages struct {
	// Passing is the number of websockets of clients that this node passes on to other nodes, Passed the number of
	// those that other nodes pass on to this node.
	Passing, Passed int
	// Unreachable counts clients that were not passed on, because the other node was not reached.
	Unreachable uint64
}

// Passages returns the present numbers.
func (s *Server) Passages() Passages {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Passages{len(s.passing), int(s.passed.Load()), uint64(s.unreachable.Load())}
}

// EndPassages closes the websockets of the clients that this node passes on. Their sessions remain on the other nodes.
func (s *Server) EndPassages(code signal.Code, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.passing {
		c.outbox.Close(code, reason)
	}
}

// beginPassage registers a client that is passed on. beginPassage reports false if there are too many.
func (s *Server) beginPassage(c *client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.passing) >= maxPassages {
		return false
	}
	s.passing[c] = struct{}{}
	return true
}

func (s *Server) endPassage(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.passing, c)
}

// bearer is the part of a request that has the client's token.
type bearer struct {
	authorization []string
	query         url.Values
}

// bearerOf returns the token of a request in the form in which the client has sent it.
func bearerOf(r *http.Request) bearer {
	b := bearer{authorization: slices.Clone(r.Header.Values("Authorization"))}
	if token := r.URL.Query()["access_token"]; token != nil {
		b.query = url.Values{"access_token": token}
	}
	return b
}

// passage is the connection of a client to another node. Its goroutine opens the connection and passes on the messages
// of the other node.
type passage struct {
	// opened is closed when the other node was reached, with the connection in home. ended is closed when the goroutine
	// has ended.
	opened, ended chan struct{}
	home          *websocket.Conn
}

// reached waits until the other node was reached or not, and reports which.
func (p *passage) reached() bool {
	select {
	case <-p.opened:
		return true
	case <-p.ended:
	}
	select {
	case <-p.opened:
		return true
	default:
		return false
	}
}

// pass passes the client's messages on to another node and the node's messages to the client, until one of the two
// websockets ends. data is the join. At most one message of each direction is in memory. pass reports whether the
// client may continue, which it may only if the other node was not reached.
func (c *client) pass(id string, data []byte, route Route) bool {
	if !c.server.beginPassage(c) {
		return c.refuseJoin(id, &signal.Error{
			Code:         signal.CodeLimit,
			Message:      fmt.Sprintf("the server passes on the maximum of %d websockets", maxPassages),
			RetryAfterMS: retryAfterMS,
		})
	}
	defer c.server.endPassage(c)
	p := &passage{opened: make(chan struct{}), ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	defer func() {
		// The client has left, or the other node was not reached.
		cancel()
		if p.reached() {
			_ = p.home.Close()
		}
		<-p.ended
	}()
	limit := c.inbox.limit
	c.passing.Store(true)
	c.inbox.limit = c.server.config.MessageBytes
	c.inbox.Alive()
	go c.carry(ctx, p, id, bytes.Clone(data), route)
	for {
		data, text, err := c.inbox.Read()
		if violated := c.inbox.Violation(err); violated != nil {
			c.violate(violated.Code, violated.Message)
			return false
		}
		if err != nil {
			return false
		}
		if !p.reached() {
			<-p.ended
			c.passing.Store(false)
			c.inbox.limit = limit
			if !text {
				data = nil
			}
			return !c.outbox.ended() && c.take(data, time.Now())
		}
		kind := websocket.BinaryMessage
		if text {
			kind = websocket.TextMessage
			c.inbox.Alive()
		}
		if c.send(p.home, kind, data) != nil {
			return false
		}
	}
}

// send writes a message to another node.
func (c *client) send(home *websocket.Conn, kind int, data []byte) error {
	if err := home.SetWriteDeadline(time.Now().Add(c.server.config.WriteTimeout)); err != nil {
		return err
	}
	return home.WriteMessage(kind, data)
}

// carry opens a websocket to another node, sends the join, and passes on the messages of the node. If the node is not
// reached, the client is told, unless it has left.
func (c *client) carry(ctx context.Context, p *passage, id string, join []byte, route Route) {
	defer close(p.ended)
	// The reader notices that the websocket is closed.
	defer c.server.config.Guard.Recover(placeOutbox, func() { _ = c.conn.NetConn().Close() })
	home, refused := c.dial(ctx, route)
	switch {
	case refused != nil:
		c.server.unreachable.Add(1)
		c.refuseJoin(id, refused)
		return
	case home == nil:
		return
	}
	p.home = home
	if c.send(home, websocket.TextMessage, join) != nil {
		_ = c.conn.NetConn().Close()
	}
	close(p.opened)
	c.passBack(home)
}

// passBack passes the messages of another node to the client until the node's websocket ends or the client does not
// read.
func (c *client) passBack(home *websocket.Conn) {
	alive := func() {
		_ = home.SetReadDeadline(time.Now().Add(silenceFactor * c.server.config.PingInterval))
	}
	answer := home.PingHandler()
	home.SetPingHandler(func(data string) error {
		alive()
		return answer(data)
	})
	home.SetReadLimit(signal.MaxMessageBytes)
	for {
		alive()
		_, text, err := home.ReadMessage()
		if err != nil {
			var closed *websocket.CloseError
			reason := ""
			if errors.As(err, &closed) {
				reason = closed.Text
			}
			c.outbox.end(signal.Code(reason))
			return
		}
		if c.outbox.Pass(text) != nil {
			c.outbox.end("")
			_ = c.conn.NetConn().Close()
			return
		}
	}
}

// dial opens a websocket to another node for the client. If the context ends, dial returns neither a websocket nor an
// error.
func (c *client) dial(ctx context.Context, route Route) (*websocket.Conn, *signal.Error) {
	address := url.URL{Scheme: "ws", Host: route.Proxy, Path: signal.Path, RawQuery: c.bearer.query.Encode()}
	within, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	opened := func() bool { return true }
	dialer := websocket.Dialer{
		HandshakeTimeout: dialTimeout, WriteBufferSize: writeBuffer, WriteBufferPool: &writeBuffers,
		NetDialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err == nil {
				// The websocket's handshake does not notice the end of a context.
				opened = context.AfterFunc(within, func() { _ = conn.Close() })
			}
			return conn, err
		},
	}
	if config := c.server.cluster.TLS(); config != nil {
		address.Scheme = "wss"
		dialer.TLSClientConfig = config.Clone()
		dialer.TLSClientConfig.ServerName = route.Node
	}
	header := http.Header{clientHeader: {c.remote}}
	if len(c.bearer.authorization) > 0 {
		header["Authorization"] = c.bearer.authorization
	}
	home, response, err := dialer.DialContext(within, address.String(), header)
	if err == nil && opened() {
		return home, nil
	}
	if ctx.Err() != nil {
		return nil, nil
	}
	c.server.log.Warn("client could not be passed on to another node", zap.String("node", route.Node), zap.Error(err))
	refused := &signal.Error{
		Code: signal.CodeInternal, Message: fmt.Sprintf("node %q could not be reached", route.Node),
		RetryAfterMS: retryAfterMS,
	}
	if response != nil {
		switch response.StatusCode {
		case http.StatusUnauthorized:
			refused = &signal.Error{Code: signal.CodeUnauthorized, Message: "the token is not valid on the room's node"}
		case http.StatusTooManyRequests:
			refused = &signal.Error{Code: signal.CodeRateLimited, Message: "too many websockets on the room's node"}
		}
	}
	return nil, refused
}
