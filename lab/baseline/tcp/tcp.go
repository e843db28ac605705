// Package tcp has what the baselines over TCP share: sockets whose congestion control is named, dialling that waits for who is to listen, and reading
// that knows when bytes came. Connections belong to who opened them.
package tcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrCongestion is wrapped with the name of a congestion control that this system does not have.
var ErrCongestion = errors.New("congestion control is not available")

// Options are those of sockets.
type Options struct {
	// Congestion names TCP's congestion control; empty is the system's.
	Congestion string
}

func (o Options) control(_, _ string, raw syscall.RawConn) error {
	if o.Congestion == "" {
		return nil
	}
	var failure error
	err := raw.Control(func(fd uintptr) { failure = setCongestion(fd, o.Congestion) })
	if err == nil && failure != nil {
		err = fmt.Errorf("%w: %q: %w", ErrCongestion, o.Congestion, failure)
	}
	return err
}

// Listen listens on an address. Connections that are accepted have the listener's congestion control.
func (o Options) Listen(ctx context.Context, address string) (net.Listener, error) {
	return (&net.ListenConfig{Control: o.control}).Listen(ctx, "tcp", address)
}

const (
	// dialPatience is how long is waited for who is to listen: processes of one experiment start at the same time.
	dialPatience = 30 * time.Second
	// dialInterval is how often is tried meanwhile.
	dialInterval = 50 * time.Millisecond
)

// DialOnce opens a connection.
func (o Options) DialOnce(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{Control: o.control}).DialContext(ctx, network, address)
}

// Dial opens a connection, and tries again while nobody listens.
func (o Options) Dial(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	for {
		conn, err := o.DialOnce(ctx, "tcp", address)
		if err == nil || errors.Is(err, ErrCongestion) {
			return conn, err
		}
		timer := time.NewTimer(dialInterval)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
	}
}

// Congestion is the congestion control of a connection, empty where the system does not say.
func Congestion(conn any) string {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return ""
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return ""
	}
	name := ""
	_ = control.Control(func(fd uintptr) { name = congestion(fd) })
	return name
}

// Counts are bytes that were moved. The zero value is ready.
type Counts struct{ Sent, Received atomic.Int64 }

// Reader reads a connection and knows when bytes came. It belongs to one goroutine.
type Reader struct {
	*bufio.Reader
	timed *timed
}

// readBuffer takes what headers have; contents are read past it.
const readBuffer = 4096

// timed notes when a read returned.
type timed struct {
	reader io.Reader
	counts *Counts
	last   time.Time
}

// Read implements io.Reader.
func (t *timed) Read(p []byte) (int, error) {
	n, err := t.reader.Read(p)
	t.last = time.Now()
	t.counts.Received.Add(int64(n))
	return n, err
}

// NewReader reads from r and counts.
func NewReader(r io.Reader, counts *Counts) *Reader {
	t := &timed{reader: r, counts: counts}
	return &Reader{bufio.NewReaderSize(t, readBuffer), t}
}

// First waits for the next byte, which stays to be read, and tells when it came.
func (r *Reader) First() (time.Time, error) {
	_, err := r.Peek(1)
	return r.timed.last, err
}

// Last is when the newest bytes came.
func (r *Reader) Last() time.Time { return r.timed.last }

// Until has writes to a connection fail once the context ends; the function that it returns takes that back.
func Until(ctx context.Context, conn net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = conn.SetWriteDeadline(time.Unix(1, 0)) })
}
