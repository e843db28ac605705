package testbed

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"

	"github.com/gorilla/websocket"
)

// BeforeMoves stands between clients and a server, and removes from the messages what clients did not know before the
// message Moved: `moves` of a join, `nodes` of its reply, and the message `nodes`. A client then behaves as an old one,
// which knows one server.
type BeforeMoves struct {
	// URL is the address for clients.
	URL string

	server   *http.Server
	requests sync.WaitGroup
}

// NewBeforeMoves returns a BeforeMoves for the server at an address. It listens at the address of this host from which
// the server is reached, so that clients choose their own address as for the server.
func NewBeforeMoves(server string) (*BeforeMoves, error) {
	host, err := localAddress(server)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	b := &BeforeMoves{URL: fmt.Sprintf("ws://%v", listener.Addr())}
	b.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.requests.Add(1)
		defer b.requests.Done()
		dialer := websocket.Dialer{}
		header := http.Header{}
		if token := r.Header.Get("Authorization"); token != "" {
			header.Set("Authorization", token)
		}
		far, _, err := dialer.DialContext(r.Context(), server+r.URL.RequestURI(), header)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = far.Close() }()
		near, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			copyMessages(near, far)
			_ = near.Close()
		}()
		copyMessages(far, near)
		_ = far.Close()
		<-ended
	})}
	go func() { _ = b.server.Serve(listener) }()
	return b, nil
}

// localAddress returns the address of this host from which the server at an address is reached. No packet is sent.
func localAddress(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	conn, err := net.Dial("udp", u.Host)
	if err != nil {
		return "", err
	}
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	return host, errors.Join(err, conn.Close())
}

// Close ends all websockets, whose clients must have left.
func (b *BeforeMoves) Close() {
	_ = b.server.Close()
	b.requests.Wait()
}

// copyMessages copies the messages from one websocket to another until one ends.
func copyMessages(to, from *websocket.Conn) {
	for {
		kind, text, err := from.ReadMessage()
		if err != nil {
			return
		}
		var m map[string]json.RawMessage
		if json.Unmarshal(text, &m) == nil {
			switch string(m["type"]) {
			case `"nodes"`:
				continue
			case `"join"`, `"joined"`:
				delete(m, "moves")
				delete(m, "nodes")
				if text, err = json.Marshal(m); err != nil {
					return
				}
			}
		}
		if to.WriteMessage(kind, text) != nil {
			return
		}
	}
}
