//go:build linux

// Package traffic sends packets between two network namespaces and counts how often each arrives. Tests and checks of
// the pair of `volnet` use it.
package traffic

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Host runs a function on a thread in a network namespace, and waits for it.
type Host interface{ Do(f func()) }

// Options describe a flow.
type Options struct {
	From, To            Host
	Source, Destination netip.Addr
	// Size is the payload of a datagram in bytes, at least 4.
	Size int
	// Segments is the number of datagrams per system call. Above 1, the kernel cuts them (UDP_SEGMENT).
	Segments int
	// Unconnected sockets have the option IP_MTU_DISCOVER of this value. The kernel gives their datagrams the
	// identification 0 with IP_PMTUDISC_PROBE, as QUIC servers use it. Connected sockets count identifications.
	Unconnected bool
	Discover    int
	// InFlight is the greatest number of datagrams that are sent and have not arrived, 0 for any number.
	InFlight int
	// Rate is the greatest number of datagrams per second, 0 for any number.
	Rate float64
	// Grace is the time after the last datagram was sent in which others may arrive, 0 for no limit.
	Grace time.Duration
}

// Flow is numbered datagrams between two sockets.
type Flow struct {
	o        Options
	from, to *net.UDPConn
	remote   netip.AddrPort
	// sent and arrived count datagrams. The sender sets waiting if too many are in flight, and the receiver then
	// signals room.
	sent, arrived atomic.Int64
	waiting       atomic.Bool
	room          chan struct{}
}

// NewFlow opens the sockets of a flow.
func NewFlow(o Options) (*Flow, error) {
	f := &Flow{o: o, room: make(chan struct{}, 1)}
	var err error
	if f.to, err = listen(o.To, o.Destination); err != nil {
		return nil, err
	}
	f.remote = f.to.LocalAddr().(*net.UDPAddr).AddrPort()
	if o.Unconnected {
		f.from, err = listen(o.From, o.Source)
	} else {
		o.From.Do(func() {
			f.from, err = net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(o.Source, 0)),
				net.UDPAddrFromAddrPort(f.remote))
		})
	}
	if err != nil {
		return nil, errors.Join(err, f.to.Close())
	}
	if err := f.configure(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *Flow) configure() error {
	if f.o.Unconnected {
		if err := setOption(f.from, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, f.o.Discover); err != nil {
			return err
		}
	}
	if f.o.Segments > 1 {
		if err := setOption(f.from, unix.SOL_UDP, unix.UDP_SEGMENT, f.o.Size); err != nil {
			return err
		}
	}
	return setOption(f.to, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)
}

// Close closes the sockets.
func (f *Flow) Close() error { return errors.Join(f.from.Close(), f.to.Close()) }

func listen(host Host, address netip.Addr) (conn *net.UDPConn, err error) {
	host.Do(func() { conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(address, 0))) })
	return conn, err
}

func setOption(conn *net.UDPConn, level, option, value int) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), level, option, value) })
	return errors.Join(err, failed)
}

// Result is how many datagrams arrived.
type Result struct {
	Sent     int
	Arrived  int // different ones
	Repeated int // arrivals of datagrams that had arrived before
}

// Transfer sends a number of datagrams, a multiple of the segments. It waits until all have arrived, and then for the
// time quiet, so that late repeats are counted. If ctx ends or Options.Grace is over before, Transfer returns the
// result without an error.
func (f *Flow) Transfer(ctx context.Context, count int, quiet time.Duration) (Result, error) {
	f.sent.Store(0)
	f.arrived.Store(0)
	if err := f.to.SetReadDeadline(time.Time{}); err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = f.to.SetReadDeadline(time.Unix(0, 0)) })
	defer stop()
	result := Result{Sent: count}
	done := make(chan error, 1)
	go func() { done <- f.receive(&result, count, quiet) }()
	if err := f.send(ctx, count); err != nil {
		cancel()
		err = errors.Join(err, <-done)
		return result, err
	}
	if f.o.Grace > 0 {
		defer time.AfterFunc(f.o.Grace, cancel).Stop()
	}
	err := <-done
	return result, err
}

func (f *Flow) send(ctx context.Context, count int) error {
	buffer := make([]byte, f.o.Size*f.o.Segments)
	began := time.Now()
	lost := time.NewTicker(time.Millisecond)
	defer lost.Stop()
	for sent := 0; sent < count && ctx.Err() == nil; sent += f.o.Segments {
		for f.o.InFlight > 0 && sent+f.o.Segments-int(f.arrived.Load()) > f.o.InFlight {
			f.waiting.Store(true)
			if f.roomy() {
				continue
			}
			select {
			case <-f.room:
			case <-lost.C:
				// Of the datagrams in flight too many may be lost for a signal.
			case <-ctx.Done():
				return nil
			}
		}
		if f.o.Rate > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(float64(sent) / f.o.Rate * float64(time.Second)))))
		}
		for i := range f.o.Segments {
			binary.BigEndian.PutUint32(buffer[i*f.o.Size:], uint32(sent+i))
		}
		var err error
		if f.o.Unconnected {
			_, err = f.from.WriteToUDPAddrPort(buffer, f.remote)
		} else {
			_, err = f.from.Write(buffer)
		}
		if err != nil {
			return err
		}
		f.sent.Add(int64(f.o.Segments))
	}
	return nil
}

// roomy reports whether so few datagrams are in flight that the sender should continue: about half of those that may
// be, so that not every arrival wakes the sender.
func (f *Flow) roomy() bool {
	most := max(f.o.InFlight/2, f.o.Segments)
	return f.sent.Load()+int64(f.o.Segments)-f.arrived.Load() <= int64(most)
}

// receive counts datagrams until the deadline of the socket.
func (f *Flow) receive(result *Result, count int, quiet time.Duration) error {
	seen := make([]bool, count)
	buffer := make([]byte, f.o.Size+1)
	for {
		n, err := f.to.Read(buffer)
		if errors.Is(err, unix.EAGAIN) || isTimeout(err) {
			return nil
		}
		if err != nil {
			return err
		}
		number := binary.BigEndian.Uint32(buffer)
		if n != f.o.Size || number >= uint32(count) {
			return fmt.Errorf("a datagram of %d bytes with number %d arrived, of %d datagrams of %d bytes", n, number,
				count, f.o.Size)
		}
		if seen[number] {
			result.Repeated++
			continue
		}
		seen[number] = true
		result.Arrived++
		f.arrived.Add(1)
		if f.waiting.Load() && f.roomy() && f.waiting.CompareAndSwap(true, false) {
			select {
			case f.room <- struct{}{}:
			default:
			}
		}
		if result.Arrived == count {
			if err := f.to.SetReadDeadline(time.Now().Add(quiet)); err != nil {
				return err
			}
		}
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// StreamResult is how a stream went.
type StreamResult struct {
	Elapsed time.Duration
	// Segments and Retransmitted count the sent segments.
	Segments, Retransmitted uint32
}

// ErrNoBBR is the error of a kernel without the congestion control BBR.
var ErrNoBBR = errors.New("the kernel has no BBR")

// Stream sends bytes, rounded up to 256 KiB, over TCP with BBR. It fails if other bytes arrive.
func Stream(from, to Host, source, destination netip.Addr, size int, limit time.Duration) (StreamResult, error) {
	deadline := time.Now().Add(limit)
	var listener *net.TCPListener
	var err error
	to.Do(func() {
		listener, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(destination, 0)))
	})
	if err != nil {
		return StreamResult{}, err
	}
	defer func() { _ = listener.Close() }()
	if err := listener.SetDeadline(deadline); err != nil {
		return StreamResult{}, err
	}
	got := sha256.New()
	done := make(chan error, 1)
	go func() { done <- absorb(listener, got, deadline) }()
	var conn *net.TCPConn
	from.Do(func() {
		conn, err = net.DialTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(source, 0)),
			listener.Addr().(*net.TCPAddr))
	})
	if err != nil {
		return StreamResult{}, err
	}
	defer func() { _ = conn.Close() }()
	raw, err := conn.SyscallConn()
	if err != nil {
		return StreamResult{}, err
	}
	_ = raw.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "bbr")
	})
	if err != nil {
		return StreamResult{}, fmt.Errorf("%w: %w", ErrNoBBR, err)
	}
	began := time.Now()
	want := sha256.New()
	if err := produce(conn, want, size, deadline); err != nil {
		return StreamResult{}, err
	}
	if err := <-done; err != nil {
		return StreamResult{}, err
	}
	result := StreamResult{Elapsed: time.Since(began)}
	var info *unix.TCPInfo
	_ = raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if err != nil {
		return StreamResult{}, err
	}
	result.Segments, result.Retransmitted = info.Segs_out, info.Total_retrans
	if string(got.Sum(nil)) != string(want.Sum(nil)) {
		return result, errors.New("the received bytes differ from the sent ones")
	}
	return result, nil
}

const blockSize = 1 << 18

// absorb reads a connection to its end.
func absorb(listener *net.TCPListener, to io.Writer, deadline time.Time) error {
	conn, err := listener.AcceptTCP()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	_, err = io.CopyBuffer(to, struct{ io.Reader }{conn}, make([]byte, blockSize))
	return err
}

// produce writes numbered blocks to a connection and to a second writer, and closes the connection for writing.
func produce(conn *net.TCPConn, second io.Writer, size int, deadline time.Time) error {
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	block := make([]byte, blockSize)
	for sent := 0; sent < size; sent += len(block) {
		binary.BigEndian.PutUint64(block, uint64(sent))
		if _, err := io.MultiWriter(conn, second).Write(block); err != nil {
			return err
		}
	}
	return conn.CloseWrite()
}
