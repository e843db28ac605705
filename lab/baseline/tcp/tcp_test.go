package tcp

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"testing"
	"time"
)

// patience is far longer than any step of these tests.
const patience = time.Minute

// TestCongestion requests Reno, which every kernel has, on both ends.
func TestCongestion(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: only Linux names its congestion control")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	options := Options{Congestion: "reno"}
	listener, err := options.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	conn, err := options.Dial(ctx, listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = accepted.Close() }()
	if a, b := Congestion(conn), Congestion(accepted); a != "reno" || b != "reno" {
		t.Errorf("got %q and %q, want reno", a, b)
	}
	if name := Congestion(bytes.NewBuffer(nil)); name != "" {
		t.Errorf("got %q for a value that is not a socket", name)
	}
	for _, open := range []func(Options) error{
		func(o Options) error { _, err := o.Listen(ctx, "127.0.0.1:0"); return err },
		func(o Options) error { _, err := o.Dial(ctx, listener.Addr().String()); return err },
	} {
		if err := open(Options{Congestion: "wishful"}); !errors.Is(err, ErrCongestion) {
			t.Errorf("got %v, want ErrCongestion", err)
		}
	}
}

// TestDialWaits opens a connection to a port whose listener starts later.
func TestDialWaits(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	first, err := Options{}.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := first.Addr().String()
	_ = first.Close()
	dialled := make(chan error, 1)
	go func() {
		conn, err := Options{}.Dial(ctx, address)
		if err == nil {
			err = conn.Close()
		}
		dialled <- err
	}()
	second, err := Options{}.Listen(ctx, address)
	if err != nil {
		t.Skipf("skipped: another process uses the port: %v", err)
	}
	defer func() { _ = second.Close() }()
	if err := <-dialled; err != nil {
		t.Error(err)
	}
	ended, stop := context.WithCancel(ctx)
	stop()
	if _, err := (Options{}).Dial(ended, address); err == nil {
		t.Error("expected an error after the end of the context")
	}
}

// TestReader: the recorded times are the times of a frame's bytes, not of the next frame's bytes.
func TestReader(t *testing.T) {
	ours, theirs := net.Pipe()
	defer func() { _ = ours.Close() }()
	var counts Counts
	r := NewReader(ours, &counts)
	before := time.Now()
	go func() {
		_, _ = theirs.Write([]byte("ab"))
		_ = theirs.Close()
	}()
	first, err := r.First()
	if err != nil || first.Before(before) {
		t.Errorf("got %v, %v", first, err)
	}
	if b, err := r.ReadByte(); err != nil || b != 'a' {
		t.Errorf("got %c, %v", b, err)
	}
	// The next byte arrived together with the first.
	if second, err := r.First(); err != nil || !second.Equal(first) || !r.Last().Equal(first) ||
		counts.Received.Load() != 2 {
		t.Errorf("got %v, %v, %d bytes", second, err, counts.Received.Load())
	}
}
