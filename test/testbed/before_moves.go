package testbed

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
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

// NewBeforeMoves returns a BeforeMoves for the server at an address.
func NewBeforeMoves(server string) (*BeforeMoves, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
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
