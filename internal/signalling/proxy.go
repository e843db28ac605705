package signalling

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/signal"
)

// clientHeader names the address of a client whose websocket another node proxies.
const clientHeader = "Volsfu-Client"

const (
	// retryAfterMS is the time after which a client may try again if another node is not reached: about the time in
	// which a cluster notices that a node is dead.
	retryAfterMS = 1000
	// maxProxied is the number of websockets that a node proxies to other nodes, and of those that it accepts from
	// them. Each has two sockets and three goroutines on the entry node.
	maxProxied = 4096
)

// Proxied returns the handler of websockets that other nodes proxy to this node. Only nodes of the cluster may reach
// the handler: it trusts the client's address that the other node names. The client's token is checked as usual.
func (s *Server) Proxied() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address, err := netip.ParseAddrPort(r.Header.Get(clientHeader))
		if err != nil {
			text := string(signal.CodeInvalid) + ": the header " + clientHeader + " has no address"
			http.Error(w, text, http.StatusBadRequest)
			return
		}
		defer s.proxies.home.Add(-1)
		if s.proxies.home.Add(1) > maxProxied {
			text := fmt.Sprintf("%s: other nodes proxy the maximum of %d websockets", signal.CodeRateLimited, maxProxied)
			http.Error(w, text, http.StatusTooManyRequests)
			return
		}
		named := *r
		named.RemoteAddr = address.String()
		s.serve(w, &named, true)
	})
}

// proxies are the websockets that are proxied between nodes. The mutex of Server guards entry.
type proxies struct {
	// entry are the clients of this node whose websockets are proxied to other nodes, nil without a cluster.
	entry map[*client]struct{}
	// home is the number of websockets that other nodes proxy to this node. unreachable counts clients whose node was
	// not reached.
	home, unreachable atomic.Int64
}

// Proxies are numbers of websockets that are proxied between nodes.
type Proxies struct {
	// Entry is the number of websockets that this node proxies to other nodes, Home the number of those that other
	// nodes proxy to this node.
	Entry, Home int
	// Unreachable counts clients whose node was not reached.
	Unreachable uint64
}

// Proxies returns the present numbers.
func (s *Server) Proxies() Proxies {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Proxies{len(s.proxies.entry), int(s.proxies.home.Load()), uint64(s.proxies.unreachable.Load())}
}

// EndProxies ends the websockets that this node proxies, without the message Closing: the sessions are on other nodes,
// and clients resume a session whose websocket has broken. code is the reason in the close frame.
func (s *Server) EndProxies(code signal.Code) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.proxies.entry {
		c.outbox.end(code)
	}
}

// beginProxy registers a client whose websocket is proxied. beginProxy reports false if there are too many.
func (s *Server) beginProxy(c *client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.proxies.entry) >= maxProxied {
		return false
	}
	s.proxies.entry[c] = struct{}{}
	return true
}

func (s *Server) endProxy(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.proxies.entry, c)
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

// proxy is the websocket to another node to which a client's websocket is proxied. Its goroutine dials the node, and
// writes the messages of the node to the client. The reader of the client writes the client's messages to the node.
type proxy struct {
	client *client
	route  Route
	// opened is closed when the websocket to the node is open, in home. ended is closed when the goroutine has ended.
	opened, ended chan struct{}
	home          *websocket.Conn
}

// isOpen waits for the end of the dial and reports whether the websocket to the node is open.
func (p *proxy) isOpen() bool {
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

// proxyTo proxies the client's websocket to another node, until one of the two websockets ends. id and data are those
// of the join. At most one message of each direction is in memory. proxyTo reports whether the client may send more
// messages, which is so only if the other node was not reached.
func (c *client) proxyTo(id string, data []byte, route Route) bool {
	if !c.server.beginProxy(c) {
		return c.refuseJoin(id, &signal.Error{
			Code:         signal.CodeLimit,
			Message:      fmt.Sprintf("the server proxies the maximum of %d websockets", maxProxied),
			RetryAfterMS: retryAfterMS,
		})
	}
	defer c.server.endProxy(c)
	p := &proxy{client: c, route: route, opened: make(chan struct{}), ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	defer func() {
		// The client has left, or the other node was not reached.
		cancel()
		if p.isOpen() {
			_ = p.home.Close()
		}
		<-p.ended
	}()
	limit := c.inbox.limit
	c.proxying.Store(true)
	c.inbox.limit = c.server.config.MessageBytes
	c.inbox.Alive()
	go p.run(ctx, id, withSecret(data, route.Ticket))
	for {
		data, text, err := c.inbox.Read()
		if violated := c.inbox.Violation(err); violated != nil {
			c.violate(violated.Code, violated.Message)
			return false
		}
		if err != nil {
			return false
		}
		if !p.isOpen() {
			<-p.ended
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
		if p.send(kind, data) != nil {
			return false
		}
	}
}

// withSecret returns a copy of the text of a join. If the join resumes a session, secret replaces the secret of the
// session. Keys that this node does not know are kept.
func withSecret(join []byte, secret string) []byte {
	var all, resume map[string]json.RawMessage
	if json.Unmarshal(join, &all) != nil || json.Unmarshal(all["resume"], &resume) != nil || resume == nil {
		return bytes.Clone(join)
	}
	resume["secret"] = encoded(secret)
	all["resume"] = encoded(resume)
	return encoded(all)
}

// encoded returns the JSON of a text, or of values that were JSON before.
func encoded(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic("the values were decoded from JSON: " + err.Error())
	}
	return text
}

// send writes a message to the other node.
func (p *proxy) send(kind int, data []byte) error {
	if err := p.home.SetWriteDeadline(time.Now().Add(p.client.server.config.WriteTimeout)); err != nil {
		return err
	}
	return p.home.WriteMessage(kind, data)
}

// run opens a websocket to the other node, sends the join, and writes the messages of the node to the client. If the
// node is not reached, the client gets an error, unless it has left, and has the time of a join for another one.
func (p *proxy) run(ctx context.Context, id string, join []byte) {
	c := p.client
	defer close(p.ended)
	// The reader notices that the websocket is closed.
	defer c.server.config.Guard.Recover(placeOutbox, func() { _ = c.conn.NetConn().Close() })
	home, refused := p.dial(ctx)
	if home == nil {
		c.server.endProxy(c)
		c.proxying.Store(false)
		c.inbox.Extend(c.server.config.JoinTimeout)
		if refused != nil {
			c.server.proxies.unreachable.Add(1)
			c.refuseJoin(id, refused)
		}
		return
	}
	p.home = home
	if p.send(websocket.TextMessage, join) != nil {
		_ = c.conn.NetConn().Close()
	}
	close(p.opened)
	p.receive()
}

// receive writes the messages of the other node to the client until the node's websocket ends or the client does not
// read.
func (p *proxy) receive() {
	c, home := p.client, p.home
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

// dial opens a websocket to the other node. If the context ends, dial returns neither a websocket nor an error.
func (p *proxy) dial(ctx context.Context) (*websocket.Conn, *signal.Error) {
	c, timeout := p.client, p.client.server.config.DialTimeout
	// The connection has TLS if the cluster has. The host is the name of the node.
	address := url.URL{Scheme: "ws", Host: p.route.Node, Path: signal.Path, RawQuery: c.bearer.query.Encode()}
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	opened := func() bool { return true }
	dialer := websocket.Dialer{
		HandshakeTimeout: timeout, WriteBufferSize: writeBuffer, WriteBufferPool: &writeBuffers,
		NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := c.server.cluster.Dial(ctx, p.route.Node)
			if err == nil {
				// The websocket's handshake does not notice the end of a context.
				opened = context.AfterFunc(within, func() { _ = conn.Close() })
			}
			return conn, err
		},
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
	c.server.log.Warn("websocket of a client could not be proxied to another node", zap.String("node", p.route.Node),
		zap.Error(err))
	refused := &signal.Error{
		Code: signal.CodeInternal, Message: fmt.Sprintf("node %q could not be reached", p.route.Node),
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
