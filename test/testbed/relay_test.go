package testbed

import (
	"io"
	"net"
	"testing"
	"time"
)

// TestRelay: bytes arrive completely and in order, not before the delay. When one side ends, the other ends, too.
func TestRelay(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = echo.Close() }()
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	const delay = 20 * time.Millisecond
	relay, err := NewRelay(echo.Addr().String(), delay)
	if err != nil {
		t.Fatal(err)
	}
	defer relay.Close()
	conn, err := net.Dial("tcp", relay.Address())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "another"} {
		began := time.Now()
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(text))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
			t.Fatalf("got %q, %v", got, err)
		}
		if took := time.Since(began); took < 2*delay {
			t.Errorf("a round trip took %v, expected %v at least", took, 2*delay)
		}
	}
	relay.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("expected that the connection has ended")
	}
}
