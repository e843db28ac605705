package turnserver

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is the time for what a busy machine may delay.
const patience = time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a media port that returns every packet, with the port's number in front of the packet.
type echo struct {
	conn *net.UDPConn

	mu   sync.Mutex
	told []netip.AddrPort
}

func newEcho(t testing.TB) *echo {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{conn: conn, told: []netip.AddrPort{unmapped(conn.LocalAddr().(*net.UDPAddr).AddrPort())}}
	var group sync.WaitGroup
	group.Go(func() {
		buffer := make([]byte, 2048)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return
			}
			_, _ = conn.WriteToUDPAddrPort(buffer[:n], from)
		}
	})
	t.Cleanup(func() {
		_ = conn.Close()
		group.Wait()
	})
	return e
}

func (e *echo) LocalAddress() netip.AddrPort {
	return unmapped(e.conn.LocalAddr().(*net.UDPAddr).AddrPort())
}
func (e *echo) Addresses() []netip.AddrPort {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.told
}

// tell sets the addresses, which the server reads in its goroutines.
func (e *echo) tell(addresses ...netip.AddrPort) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = addresses
}

// sessions are the sessions that live.
type sessions struct {
	mu   sync.Mutex
	live map[string]bool
}

func (s *sessions) has(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[session]
}

func (s *sessions) set(session string, lives bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[session] = lives
}

// stage is a server with a media port.
type stage struct {
	*Server
	media    *echo
	sessions *sessions
}

func newStage(t testing.TB, adjust func(*Config)) *stage {
	t.Helper()
	c := DefaultConfig()
	c.Listen = "127.0.0.1:0"
	if adjust != nil {
		adjust(&c)
	}
	s := &stage{media: newEcho(t), sessions: &sessions{live: map[string]bool{"ada": true}}}
	var err error
	s.Server, err = Start(Options{Config: c, Media: s.media, HasSession: s.sessions.has,
		Failed: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// refusals returns the number of refusals for a reason.
func (s *stage) refusals(why refusal) uint64 { return s.refused[why].Load() }

// use makes an allocation with a session's credential and calls f with the relayed address.
func (s *stage) use(t *testing.T, url, session string, f func(net.PacketConn) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	username, password := s.credentials.issue(session, time.Now().Add(time.Minute))
	return Check(ctx, url, username, password, nil, f)
}

// exchange sends packets to an address until one returns, and reports whether one did within the time.
func exchange(conn net.PacketConn, to netip.AddrPort, text string, within time.Duration) bool {
	buffer := make([]byte, 2048)
	for end := time.Now().Add(within); time.Now().Before(end); {
		if _, err := conn.WriteTo([]byte(text), net.UDPAddrFromAddrPort(to)); err != nil {
			return false
		}
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		n, from, err := conn.ReadFrom(buffer)
		if err == nil && bytes.Equal(buffer[:n], []byte(text)) && addressOf(from) == to {
			return true
		}
	}
	return false
}
