package icetcp

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/panics"
)

// brokenReading is a connection whose Read panics.
type brokenReading struct{ net.Conn }

func (brokenReading) Read([]byte) (int, error) { panic("test") }

// TestAPanicEndsOneTCPConnectionForPion: methods that Pion's goroutines call panic.
func TestAPanicEndsOneTCPConnectionForPion(t *testing.T) {
	for _, test := range []struct {
		name string
		call func(*connection) (int, error)
	}{
		{"read", func(c *connection) (int, error) {
			c.Conn = brokenReading{c.Conn}
			return c.Read(make([]byte, 1))
		}},
		{"write", func(c *connection) (int, error) {
			c.listener.clock = func() time.Time { panic("test") }
			return c.Write(framed([]byte("packet")))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			config, _, played := listening()
			reported := make(chan panics.Report, 1)
			config.Guard = panics.NewGuard(func(r panics.Report) { reported <- r }, PanicPlace)
			far := played.connect()
			l := newListener(played, config, limits{total: 2, address: 2, peer: 2, age: time.Second})
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			c := conn.(*connection)
			if n, err := test.call(c); n != 0 || !errors.Is(err, errPanicked) {
				t.Errorf("the call returns %d, %v, expected %v", n, err, errPanicked)
			}
			if r := <-reported; r.Where != PanicPlace || r.Value != "test" {
				t.Errorf("the panic %v is one of %q, expected one of %q", r.Value, r.Where, PanicPlace)
			}
			if _, err := far.Read(make([]byte, 1)); err == nil {
				t.Error("the connection is open")
			}
			if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
			if stats := l.stats(); stats.Open != 0 {
				t.Errorf("%d connections are open, expected none", stats.Open)
			}
			_ = l.Close()
		})
	}
}
