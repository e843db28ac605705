// Package tcp contains the common parts of the baselines over TCP: sockets with a selected congestion control, dialling
// that waits for the listener, and a reader that records arrival times. Connections belong to their opener.
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

	"github.com/volsfu/volsfu/lab/wallclock"
)

// ErrCongestion is returned for a congestion control that this system does not have. The wrapping error has its name.
var ErrCongestion = errors.New("congestion control is not available")

// Options are options of sockets.
type Options struct {
	// Congestion names TCP's congestion control; empty selects the system's.
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

// Listen listens on an address. Accepted connections have the listener's congestion control.
func (o Options) Listen(ctx context.Context, address string) (net.Listener, error) {
	return (&net.ListenConfig{Control: o.control}).Listen(ctx, "tcp", address)
}

const (
	// dialPatience is the time limit for the listener to start: processes of one experiment start at the same time.
	dialPatience = 30 * time.Second
	// dialInterval is the interval between attempts.
	dialInterval = 50 * time.Millisecond
)

// DialOnce opens a connection.
func (o Options) DialOnce(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{Control: o.control}).DialContext(ctx, network, address)
}

// Dial opens a connection, and repeats the attempt while there is no listener.
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

// Congestion returns the congestion control of a connection, empty if the system does not report it.
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

// Counts are numbers of bytes. The zero value is ready.
type Counts struct{ Sent, Received atomic.Int64 }

// Reader reads a connection and records when bytes arrived. It belongs to one goroutine.
type Reader struct {
	*bufio.Reader
	timed *timed
}

// readBuffer is enough for headers; contents bypass the buffer.
const readBuffer = 4096

// timed records when a read returned.
type timed struct {
	reader io.Reader
	counts *Counts
	last   time.Time
}

// Read implements io.Reader.
func (t *timed) Read(p []byte) (int, error) {
	n, err := t.reader.Read(p)
	t.last = wallclock.Now()
	t.counts.Received.Add(int64(n))
	return n, err
}

// NewReader returns a reader of r that counts bytes.
func NewReader(r io.Reader, counts *Counts) *Reader {
	t := &timed{reader: r, counts: counts}
	return &Reader{bufio.NewReaderSize(t, readBuffer), t}
}

// First waits for the next byte without consuming it, and returns its arrival time.
func (r *Reader) First() (time.Time, error) {
	_, err := r.Peek(1)
	return r.timed.last, err
}

// Last returns the arrival time of the newest bytes.
func (r *Reader) Last() time.Time { return r.timed.last }

// Until makes writes to a connection fail once the context ends. The returned function cancels this.
func Until(ctx context.Context, conn net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = conn.SetWriteDeadline(time.Unix(1, 0)) })
}
