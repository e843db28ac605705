package e2e

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/e2e/puppet"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// onlyByItself sets the server's timers so that none ends the connections of a test: peer connections do not fail, and
// no time limit expires.
func onlyByItself(c *config.Config) {
	c.Media.FailedTimeout, c.Rooms.ConnectTimeout, c.Rooms.AnswerTimeout = time.Hour, time.Hour, time.Hour
}

// TestAPeerConnectionThatItsClientEnds checks that the server notifies the client at once, and the others only if the
// client does not resume.
func TestAPeerConnectionThatItsClientEnds(t *testing.T) {
	c := startConference(t, onlyByItself, func(c *config.Config) { c.Rooms.ResumeGrace = time.Second })
	bob := join(t, c, testbed.Part{Room: "room", Identity: "bob", Receive: true})
	p, err := puppet.Dial(puppet.Config{URL: c.Server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Join(&signal.Join{
		Version: signal.Version, Room: "room", Identity: "alice",
		Publications: []volumetric.Publication{body(1, 1).Publication()},
	}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "media can flow", p.Connected)
	p.EndMedia()
	wait.Until(t, "alice is notified", func() bool { return p.Closing() != nil })
	if code := p.Closing().Code; code != signal.CodeConnection {
		t.Errorf("told %q, expected %q", code, signal.CodeConnection)
	}
	wait.Until(t, "bob is notified that alice has left", func() bool { return bob.Count("left") == 1 })
}

// roaming is a UDP socket whose address changes, like that of a client that changes its network or whose NAT mapping
// expires.
type roaming struct {
	mu     sync.Mutex
	conn   net.PacketConn
	closed bool
}

func newRoaming(t *testing.T) *roaming {
	t.Helper()
	r := &roaming{}
	r.move(t)
	return r
}

// move changes the address. Data that arrives at the previous one is lost.
func (r *roaming) move(t *testing.T) {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil {
		_ = r.conn.Close()
	}
	r.conn = conn
}

func (r *roaming) current() (conn net.PacketConn, closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conn, r.closed
}

// ReadFrom implements net.PacketConn, as do the other methods.
func (r *roaming) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		conn, closed := r.current()
		n, from, err := conn.ReadFrom(b)
		if err == nil || closed || !errors.Is(err, net.ErrClosed) {
			return n, from, err
		}
	}
}

func (r *roaming) WriteTo(b []byte, to net.Addr) (int, error) {
	conn, _ := r.current()
	n, err := conn.WriteTo(b, to)
	if errors.Is(err, net.ErrClosed) {
		// The socket was being replaced.
		return len(b), nil
	}
	return n, err
}

func (r *roaming) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.conn.Close()
}

func (r *roaming) LocalAddr() net.Addr {
	conn, _ := r.current()
	return conn.LocalAddr()
}

func (r *roaming) SetDeadline(at time.Time) error {
	conn, _ := r.current()
	return conn.SetDeadline(at)
}

func (r *roaming) SetReadDeadline(at time.Time) error {
	conn, _ := r.current()
	return conn.SetReadDeadline(at)
}

func (r *roaming) SetWriteDeadline(at time.Time) error {
	conn, _ := r.current()
	return conn.SetWriteDeadline(at)
}

// TestAClientWhoseAddressChanges checks that a client continues to send and receive after its address has changed,
// although its websocket was never closed and its peer connection has not failed: silence suffices as the trigger.
func TestAClientWhoseAddressChanges(t *testing.T) {
	c := startConference(t, onlyByItself, func(c *config.Config) {
		c.Media.DisconnectedTimeout, c.Media.KeepAlive = time.Second, 200*time.Millisecond
	})
	socket := newRoaming(t)
	alice := join(t, c, testbed.Part{Room: "room", Identity: "alice", Loads: []testbed.Load{body(1, 1)}, Receive: true,
		Media: socket})
	bob := join(t, c, testbed.Part{Room: "room", Identity: "bob", Loads: []testbed.Load{body(1, 1)}, Receive: true})
	flows := func(what string) {
		t.Helper()
		to, from := frames(alice, tile("bob", "body", 0)), frames(bob, tile("alice", "body", 0))
		wait.Until(t, what, func() bool {
			return frames(alice, tile("bob", "body", 0)) > to+10 && frames(bob, tile("alice", "body", 0)) > from+10
		})
	}
	flows("media flows both ways")
	for range 2 {
		socket.move(t)
		flows("media flows from and to the new address")
	}
	if n := alice.Count("resumed") + bob.Count("left"); n != 0 {
		t.Errorf("resumed or left %d times, expected neither", n)
	}
	if err := errors.Join(alice.Failure(), bob.Failure()); err != nil {
		t.Error(err)
	}
}
