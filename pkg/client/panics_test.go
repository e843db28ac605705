package client

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
)

// diary is a log that may be read while it is written.
type diary struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (d *diary) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(b)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

// brokenConn is a socket whose reading panics once it is broken.
type brokenConn struct {
	net.PacketConn
	broken atomic.Bool
}

func (c *brokenConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := c.PacketConn.ReadFrom(b)
	if c.broken.Load() {
		panic("the socket is broken")
	}
	return n, from, err
}

// TestAPanicEndsOneSession: each goroutine of a session panics. The session ends with the panic as its error, the
// program's channels are closed, Close returns, and another session of the same server continues.
func TestAPanicEndsOneSession(t *testing.T) {
	for _, test := range []struct {
		name  string
		panic func(*Session, *brokenConn)
		value string
	}{
		{"signalling", func(s *Session, _ *brokenConn) {
			s.room.mu.Lock()
			defer s.room.mu.Unlock()
			s.room.participants = nil
		}, "nil map"},
		{"sending", func(s *Session, _ *brokenConn) {
			s.path.media().mu.Lock()
			defer s.path.media().mu.Unlock()
			s.path.media().uplink = nil
			s.path.media().wakeSender()
		}, "nil pointer"},
		{"watching", func(s *Session, _ *brokenConn) {
			s.path.media().mu.Lock()
			defer s.path.media().mu.Unlock()
			s.path.media().downlink = nil
		}, "nil pointer"},
		{"socket", func(s *Session, conn *brokenConn) {
			conn.broken.Store(true)
			_, _ = conn.WriteTo([]byte("datagram"), conn.LocalAddr())
		}, "the socket is broken"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			url := playing(t, func(s *played) {
				s.admit(longEnough)
				for s.next() != nil {
					s.say(&signal.ParticipantJoined{Participant: signal.Participant{Identity: "eve",
						Publications: nil}})
				}
			})
			socket, err := net.ListenPacket("udp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			conn, log := &brokenConn{PacketConn: socket}, &diary{}
			ctx, cancel := context.WithTimeout(context.Background(), longEnough)
			defer cancel()
			s, err := Join(ctx, Config{
				URL: url, Room: "room", Identity: "mallory", PacketConn: conn,
				Log: slog.New(slog.NewTextHandler(log, nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			kept := joinPlayed(t, url, signalling.DefaultTimes)
			test.panic(s, conn)
			s.SetViewpoint(Viewpoint{})
			expectPanicked(t, s, test.value)
			for range s.Frames() {
			}
			for range s.Events() {
			}
			expectClosing(t, s)
			if text := log.String(); !strings.Contains(text, "panic: ") || !strings.Contains(text, "goroutine ") {
				t.Errorf("the log has no panic with its stack: %q", text)
			}
			if err := kept.Err(); err != nil {
				t.Errorf("the other session has ended: %v", err)
			}
			kept.SetViewpoint(Viewpoint{})
			expectEvent[ParticipantJoined](t, kept)
		})
	}
}

// expectPanicked waits for the end of a session, whose error is a panic with the given text.
func expectPanicked(t *testing.T, s *Session, value string) {
	t.Helper()
	select {
	case <-s.Done():
	case <-time.After(longEnough):
		t.Fatal("timed out: the session ends")
	}
	if err := s.Err(); !errors.Is(err, ErrPanicked) || !strings.Contains(err.Error(), value) {
		t.Errorf("the session has ended with %v, expected %v with %q", err, ErrPanicked, value)
	}
}

// expectClosing closes a session.
func expectClosing(t *testing.T, s *Session) {
	t.Helper()
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(longEnough):
		t.Fatal("timed out: the session is closed")
	}
}

// TestAPanicOfTheGoroutineThatPings ends the session, or fails the join. The ping interval is not set, which panics.
func TestAPanicOfTheGoroutineThatPings(t *testing.T) {
	url := playing(t, func(s *played) {
		s.admit(longEnough)
		s.listen()
	})
	times := signalling.DefaultTimes
	times.Ping = 0
	ctx, cancel := context.WithTimeout(context.Background(), longEnough)
	defer cancel()
	s, err := Join(ctx, Config{URL: url, Room: "room", Identity: "ada", times: times})
	if err != nil {
		if !errors.Is(err, ErrPanicked) {
			t.Errorf("joining fails with %v, expected %v", err, ErrPanicked)
		}
		return
	}
	expectPanicked(t, s, "NewTicker")
	expectClosing(t, s)
}

// brokenLog panics with each record.
type brokenLog struct{ slog.Handler }

func (brokenLog) Enabled(context.Context, slog.Level) bool { return true }

func (brokenLog) Handle(context.Context, slog.Record) error { panic("the log is broken") }

// TestAPanicWhileASessionIsFreed: the session's goroutine panics, then a step of freeing, and then the log. The
// remaining steps are performed.
func TestAPanicWhileASessionIsFreed(t *testing.T) {
	m := newRig(t, Config{Log: slog.New(brokenLog{})})
	s := m.session
	url, _ := listener(t)
	m.dial(t, url)
	m.peer.Store(newPeer(t, m))
	var err error
	if s.endpoint, err = s.config.endpoint(); err != nil {
		t.Fatal(err)
	}
	m.tracing, s.frameTimes.tracing = nil, nil
	newControl(s.parts).run()
	expectPanicked(t, s, "nil pointer")
	for range s.Frames() {
	}
	for range s.Events() {
	}
	if m.mu.TryLock() {
		m.mu.Unlock()
	} else {
		t.Error("the mutex of media is held")
	}
	if err := <-s.endpoint.Failed(); err != nil {
		t.Errorf("the socket has failed with %v, expected it to be closed", err)
	}
}
