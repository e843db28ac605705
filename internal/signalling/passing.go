package signalling

import (
	"context"
	"errors"
	"fmt"
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
		named := *r
		named.RemoteAddr = address.String()
		s.serve(w, &named, true)
	})
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

// pass passes the client's messages on to another node and the node's messages to the client, until one of the two
// websockets ends. data is the join. At most one message of each direction is in memory. pass reports whether the
// client may continue, which it may only if the other node was not reached.
func (c *client) pass(id string, data []byte, route Route) bool {
	home, refused := c.dial(route)
	if refused != nil {
		return c.refuseJoin(id, refused)
	}
	ended := make(chan struct{})
	defer func() {
		_ = home.Close()
		<-ended
	}()
	c.passing = true
	c.inbox.limit = c.server.config.MessageBytes
	c.inbox.Alive()
	go func() {
		defer close(ended)
		// The reader notices that the websocket is closed.
		defer c.server.config.Guard.Recover(placeOutbox, func() { _ = c.conn.NetConn().Close() })
		c.passBack(home)
	}()
	for kind := websocket.TextMessage; ; {
		err := home.SetWriteDeadline(time.Now().Add(c.server.config.WriteTimeout))
		if err == nil {
			err = home.WriteMessage(kind, data)
		}
		if err != nil {
			return false
		}
		var text bool
		data, text, err = c.inbox.Read()
		if violated := c.inbox.Violation(err); violated != nil {
			c.violate(violated.Code, violated.Message)
			return false
		}
		if err != nil {
			return false
		}
		if kind = websocket.BinaryMessage; text {
			kind = websocket.TextMessage
			c.inbox.Alive()
		}
	}
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

// dial opens a websocket to another node for the client.
func (c *client) dial(route Route) (*websocket.Conn, *signal.Error) {
	address := url.URL{Scheme: "ws", Host: route.Proxy, Path: signal.Path, RawQuery: c.bearer.query.Encode()}
	dialer := websocket.Dialer{
		HandshakeTimeout: dialTimeout, WriteBufferSize: writeBuffer, WriteBufferPool: &writeBuffers,
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
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	home, response, err := dialer.DialContext(ctx, address.String(), header)
	if err == nil {
		return home, nil
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
