package engineio

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/lab/baseline/reflector"
	"github.com/volsfu/volsfu/lab/baseline/tcp"
	"github.com/volsfu/volsfu/lab/carriage"
)

// Path is the path of socket.io's websockets.
const Path = "/socket.io/"

// Intervals of a server: engine.io's defaults.
const (
	pingInterval = 25 * time.Second
	pingTimeout  = 20 * time.Second
)

// headerTimeout is the time limit for a request's header.
const headerTimeout = 10 * time.Second

// Serve runs a relay until the context ends, with queues of the given number of frames. listening is called with the
// relay's address.
func Serve(ctx context.Context, options tcp.Options, address string, queue int,
	listening func(string)) (*carriage.Relayed, error) {
	listener, err := options.Listen(ctx, address)
	if err != nil {
		return nil, err
	}
	s := &server{fanout: reflector.NewFanout[relayed](queue), ctx: ctx, conns: make(map[*websocket.Conn]bool)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, s.serve)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	listening(listener.Addr().String())
	stop := context.AfterFunc(ctx, func() {
		_ = web.Close()
		s.shut()
	})
	defer stop()
	if err = web.Serve(listener); errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	s.shut()
	s.serving.Wait()
	counts := s.fanout.Counts()
	return &counts, err
}

// server is a running relay.
type server struct {
	ctx     context.Context
	fanout  *reflector.Fanout[relayed]
	serving sync.WaitGroup

	mu      sync.Mutex
	clients int
	conns   map[*websocket.Conn]bool
	closed  bool
}

// relayed is a relayed event: the text that announces the attachment, and the attachment.
type relayed struct{ text, data []byte }

func (r relayed) size() int { return len(r.text) + len(r.data) }

func (s *server) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for conn := range s.conns {
		_ = conn.Close()
	}
}

// enter registers a client.
func (s *server) enter(conn *websocket.Conn) (number int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, false
	}
	s.clients++
	s.serving.Add(1)
	s.conns[conn] = true
	return s.clients, true
}

func (s *server) leave(conn *websocket.Conn) {
	_ = conn.Close()
	s.mu.Lock()
	delete(s.conns, conn)
	s.mu.Unlock()
	s.serving.Done()
}

// buffers is the size of a websocket's buffers. Larger messages bypass the buffers.
const buffers = 4096

// serve handles one client's request.
func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	if q := r.URL.Query(); q.Get("EIO") != "4" || q.Get("transport") != "websocket" {
		http.Error(w, "expected EIO=4&transport=websocket", http.StatusBadRequest)
		return
	}
	upgrader := websocket.Upgrader{ReadBufferSize: buffers, WriteBufferSize: buffers,
		CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	number, ok := s.enter(conn)
	if !ok {
		_ = conn.Close()
		return
	}
	defer s.leave(conn)
	conn.SetReadLimit(carriage.MaxFrameBytes)
	own := s.fanout.Join()
	var writing sync.WaitGroup
	defer writing.Wait()
	defer s.fanout.Leave(own)
	writing.Go(func() { s.write(conn, number, own) })
	s.read(conn, own)
}

// write sends the handshake to a client, then the other clients' events and pings, until the client has left.
func (s *server) write(conn *websocket.Conn, number int, own *reflector.Outbox[relayed]) {
	handshake, err := json.Marshal(Handshake{
		SID: "lab" + strconv.Itoa(number), Upgrades: []string{}, MaxPayload: carriage.MaxFrameBytes,
		PingInterval: int(pingInterval.Milliseconds()), PingTimeout: int(pingTimeout.Milliseconds()),
	})
	if err == nil {
		err = conn.WriteMessage(websocket.TextMessage, Append(nil, Open, handshake))
	}
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	for {
		select {
		case r, open := <-own.Packets():
			if !open {
				return
			}
			if err != nil {
				continue // drain the queue
			}
			if err = conn.WriteMessage(websocket.TextMessage, r.text); err == nil {
				err = conn.WriteMessage(websocket.BinaryMessage, r.data)
			}
			if err == nil {
				s.fanout.Sent(r.size())
			}
		case <-ping.C:
			if err == nil {
				err = conn.WriteMessage(websocket.TextMessage, []byte{byte(Ping)})
			}
		}
		if err != nil {
			_ = conn.Close()
		}
	}
}

// read relays a client's events until its connection ends.
func (s *server) read(conn *websocket.Conn, own *reflector.Outbox[relayed]) {
	for {
		text, data, err := readEvent(conn, nil)
		if err != nil {
			_ = conn.Close()
			return
		}
		event, stream, err := text.ParseEvent()
		if err != nil || event != EventSend {
			continue
		}
		r := relayed{AppendEvent(nil, EventReceive, stream), data}
		s.fanout.Spread(own, r, r.size())
	}
}

// readEvent reads until an event with an attachment is complete. Pings are answered by pong if pong is not nil.
func readEvent(conn *websocket.Conn, pong func() error) (event Packet, data []byte, err error) {
	awaiting := false
	for {
		kind, message, err := conn.ReadMessage()
		switch {
		case err != nil:
			return event, nil, err
		case kind == websocket.BinaryMessage && awaiting:
			return event, message, nil
		case kind == websocket.BinaryMessage:
			continue
		}
		t, content, err := Parse(message)
		if err != nil {
			return event, nil, err
		}
		switch {
		case t == Ping && pong != nil:
			if err := pong(); err != nil {
				return event, nil, err
			}
		case t == Message:
			if event, err = ParsePacket(content); err != nil {
				return event, nil, err
			}
			awaiting = event.Kind == BinaryEvent && event.Attachments == 1
		}
	}
}
