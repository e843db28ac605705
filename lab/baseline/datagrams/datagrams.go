// Package datagrams carries frames by the UDP protocol of paper 002 (package chunks): in packets of 1,400 bytes, paced
// or not. The producer is configured with its consumer's address. The consumer recognises the end of a frame when the
// next frame begins. The protocol has neither repair nor an estimate.
package datagrams

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/volsfu/volsfu/internal/udp"
	"github.com/volsfu/volsfu/lab/baseline/chunks"
	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/lab/wallclock"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// socketBuffer is the requested buffer for each direction, in bytes. A frame of 1.1 MB, the paper's largest, is 800
// packets. Each costs the kernel 2,300 bytes, together 1.8 MB. The buffer has room for two frames.
const socketBuffer = 4 << 20

// errUnasked reports that the protocol has no channel for choices.
var errUnasked = errors.New("the protocol of paper 002 has no choice of qualities")

// End is a producer's end, a consumer's end, or both in one. Each has a socket.
type End struct {
	gap  time.Duration
	out  *net.UDPConn // nil if the end does not publish
	in   *net.UDPConn // nil if the end does not watch
	sent atomic.Int64
	got  atomic.Int64

	sending sync.Mutex
	packet  []byte
	last    uint32
}

// Open opens an end that listens at an address, or sends to an address with a gap between packets, or both. An empty
// address disables the direction.
func Open(listen, connect string, gap time.Duration) (*End, error) {
	e := &End{gap: gap, packet: make([]byte, 0, chunks.MaxPacketSize)}
	if listen != "" {
		address, err := net.ResolveUDPAddr("udp", listen)
		if err != nil {
			return nil, err
		}
		if e.in, err = net.ListenUDP("udp", address); err != nil {
			return nil, err
		}
		udp.EnlargeBuffers(e.in, socketBuffer, 0)
	}
	if connect != "" {
		address, err := net.ResolveUDPAddr("udp", connect)
		if err == nil {
			e.out, err = net.DialUDP("udp", nil, address)
		}
		if err != nil {
			_ = e.Close()
			return nil, err
		}
		udp.EnlargeBuffers(e.out, 0, socketBuffer)
	}
	return e, nil
}

// Address returns the listen address, empty if the end does not listen.
func (e *End) Address() string {
	if e.in == nil {
		return ""
	}
	return e.in.LocalAddr().String()
}

// Run implements carriage.End.
func (e *End) Run(ctx context.Context, to carriage.Taker) error {
	if e.in == nil {
		<-ctx.Done()
		return nil
	}
	stop := context.AfterFunc(ctx, func() { _ = e.in.Close() })
	defer stop()
	assembler := chunks.NewAssembler(carriage.MaxFrameBytes)
	buffer := make([]byte, chunks.MaxPacketSize+1)
	for {
		n, _, err := e.in.ReadFromUDPAddrPort(buffer)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		e.got.Add(int64(n))
		// Malformed packets are not from the producer.
		if f, closed, err := assembler.Push(buffer[:n], wallclock.Now()); err == nil && closed {
			to.Take(&carriage.Arrival{Data: slices.Clone(f.Data), First: f.First, Last: f.Last, Whole: f.Closed})
		}
	}
}

// Ready implements carriage.End: the protocol does not report whether the consumer exists.
func (e *End) Ready(ctx context.Context) error { return ctx.Err() }

// Wanted implements carriage.End.
func (e *End) Wanted(int, volumetric.Quality) bool { return true }

// SendOne implements chunks.Outlet. Packets for a consumer that has not started are lost.
func (e *End) SendOne(datagram []byte) {
	n, err := e.out.Write(datagram)
	if errors.Is(err, syscall.ECONNREFUSED) {
		// The error belongs to an earlier datagram, and this datagram has not been sent.
		n, _ = e.out.Write(datagram)
	}
	e.sent.Add(int64(n))
}

// Send implements carriage.End.
func (e *End) Send(_ context.Context, f *carriage.Frame) (carriage.Departure, error) {
	e.sending.Lock()
	defer e.sending.Unlock()
	first, last, _ := chunks.Transmit(e, e.packet, f.Number, f.Bytes, e.gap)
	e.last = f.Number
	return carriage.Departure{First: first, Last: last, Copies: 1}, nil
}

// Choose implements carriage.End.
func (e *End) Choose(context.Context, []volumetric.Quality) error { return errUnasked }

// Traffic implements carriage.End.
func (e *End) Traffic() carriage.Traffic {
	return carriage.Traffic{Sent: e.sent.Load(), Received: e.got.Load()}
}

// Close implements carriage.End. Close also makes the consumer close the last frame.
func (e *End) Close() error {
	var errs []error
	if e.out != nil {
		chunks.Finish(e, e.packet, e.last)
		errs = append(errs, e.out.Close())
	}
	if e.in != nil {
		if err := e.in.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
