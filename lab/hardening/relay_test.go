package hardening

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/wait"
)

// TestRelayCountsOffers: offers are counted whatever the size of the server's writes.
func TestRelayCountsOffers(t *testing.T) {
	const offers = 5
	text := strings.Repeat(`x{"type":"offer","sdp":"v=0"}{"type":"offers"}`, offers)
	for piece := 1; piece <= len(text); piece += 7 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		d, err := newRelay(func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
		})
		if err != nil {
			t.Fatal(err)
		}
		client, err := net.Dial("tcp", strings.TrimPrefix(d.url(), "ws://"))
		if err != nil {
			t.Fatal(err)
		}
		server, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan string, 1)
		go func() {
			all, _ := io.ReadAll(client)
			got <- string(all)
		}()
		for rest := text; rest != ""; {
			n := min(piece, len(rest))
			if _, err := io.WriteString(server, rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		_ = server.Close()
		if all := <-got; all != text {
			t.Errorf("in pieces of %d: %d bytes arrived, expected all %d", piece, len(all), len(text))
		}
		if n := d.offers.Load(); n != offers {
			t.Errorf("in pieces of %d: %d offers, expected %d", piece, n, offers)
		}
		_, _ = client.Close(), listener.Close()
		d.close()
	}
}

// TestRelayToNowhere: without a server behind the relay, the client's connection ends.
func TestRelayToNowhere(t *testing.T) {
	refused := errors.New("refused")
	d, err := newRelay(func(context.Context) (net.Conn, error) { return nil, refused })
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	client, err := net.Dial("tcp", strings.TrimPrefix(d.url(), "ws://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if n, err := client.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes, expected the end", n)
	}
}

func TestDelayedConn(t *testing.T) {
	const delay = 20 * time.Millisecond
	near, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	far, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = far.Close() }()
	c := newDelayedConn(near, delay)
	if err := far.SetReadDeadline(time.Now().Add(wait.Patience)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := c.WriteTo([]byte("there"), far.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 100)
	n, from, err := far.ReadFrom(buffer)
	if err != nil || string(buffer[:n]) != "there" {
		t.Fatalf("got %q, %v", buffer[:n], err)
	}
	if took := time.Since(began); took < delay {
		t.Errorf("there after %v, expected %v or more", took, delay)
	}
	began = time.Now()
	if _, err := far.WriteTo([]byte("back"), from); err != nil {
		t.Fatal(err)
	}
	n, _, err = c.ReadFrom(buffer)
	if err != nil || string(buffer[:n]) != "back" {
		t.Fatalf("got %q, %v", buffer[:n], err)
	}
	if took := time.Since(began); took < delay {
		t.Errorf("back after %v, expected %v or more", took, delay)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := c.ReadFrom(buffer); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v, expected net.ErrClosed", err)
	}
}
