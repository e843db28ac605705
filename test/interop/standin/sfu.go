package standin

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/pion/transport/v5"
)

// Config has the settings of a stand-in.
type Config struct {
	// Listener accepts websockets.
	Listener net.Listener
	// Addresses is the prefix of the addresses for media.
	Addresses string
	// Net replaces the system's network unless nil.
	Net    transport.Net
	Faults Faults
}

// Faults are the faults of a stand-in.
type Faults struct {
	// CandidatesFirst sends candidates before the offer, as the original often does.
	CandidatesFirst bool
	// SecondOffer sends two offers at once, as the original does when a client joins.
	SecondOffer bool
	// SendLinesFirst begins the first offer with a line that only sends.
	SendLinesFirst bool
	// BadCandidate, BadOffer and ShortMessage send invalid data.
	BadCandidate, BadOffer, ShortMessage bool
	// NoExtension omits the header extension for transport-wide numbers.
	NoExtension bool
	// Padding sends a packet without payload after every frame, Duplicates sends every packet twice, with different
	// sequence numbers.
	Padding, Duplicates bool
	// MidFrame switches at any packet, as the original does.
	MidFrame bool
	// KeepNumbers forwards frame numbers unchanged, as the original does.
	KeepNumbers bool
	// StrictNumbers reads quality messages as the original does: a field with other characters than digits is ignored.
	StrictNumbers bool
}

// SFU is a running stand-in.
type SFU struct {
	config  Config
	server  http.Server
	serving sync.WaitGroup

	mu      sync.Mutex
	members map[int]*member
	closed  bool
}

// Start starts a stand-in, which owns the listener.
func Start(c Config) *SFU {
	s := &SFU{config: c, members: make(map[int]*member)}
	mux := http.NewServeMux()
	mux.HandleFunc("/websocket", s.join)
	s.server.Handler = mux
	s.server.ReadHeaderTimeout = 10 * time.Second
	s.serving.Go(func() { _ = s.server.Serve(c.Listener) })
	return s
}

// Address returns the address to which peers connect, as host:port.
func (s *SFU) Address() string { return s.config.Listener.Addr().String() }

// Close ends everything and waits for the end.
func (s *SFU) Close() {
	s.mu.Lock()
	s.closed = true
	for _, m := range s.members {
		_ = m.conn.Close()
	}
	s.mu.Unlock()
	_ = s.server.Shutdown(context.Background())
	s.serving.Wait()
}

// join serves one websocket.
func (s *SFU) join(w http.ResponseWriter, r *http.Request) {
	number := func(key string) (int, error) { return strconv.Atoi(r.URL.Query().Get(key)) }
	tiles, err := number("ntiles")
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	qualities, err := number("nqualities")
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	client, err := number("clientid")
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	s.serving.Add(1)
	defer s.serving.Done()
	m := &member{sfu: s, client: client, tiles: tiles, qualities: qualities, conn: conn,
		outlets: make(map[source]*outlet)}
	if err := s.enter(m); err != nil {
		_ = conn.Close()
		if m.connection != nil {
			_ = m.connection.GracefulClose()
		}
		return
	}
	m.read()
	s.leave(m)
}

// enter connects a member with the others in both directions, and sends offers to all.
func (s *SFU) enter(m *member) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.members[m.client] != nil {
		return fmt.Errorf("client %d exists already", m.client)
	}
	if err := m.connect(); err != nil {
		return err
	}
	for _, other := range s.members {
		if err := m.takeFrom(other); err != nil {
			return err
		}
		// A member whose connection is closed is about to leave: this ends the original, but not the stand-in.
		_ = other.takeFrom(m)
	}
	s.members[m.client] = m
	for _, each := range s.members {
		each.negotiate()
	}
	return nil
}

// leave removes a member, and the member's media from the others.
func (s *SFU) leave(m *member) {
	_ = m.conn.Close()
	s.mu.Lock()
	delete(s.members, m.client)
	for _, other := range s.members {
		other.dropFrom(m.client)
		other.negotiate()
	}
	s.mu.Unlock()
	_ = m.connection.GracefulClose()
}
