package direct

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"

	"github.com/volsfu/volsfu/lab/baseline/tcp"
	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/lab/wallclock"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// Publisher is the publishing end. A Publisher listens, and has a goroutine for each connection.
type Publisher struct {
	listener net.Listener
	counts   tcp.Counts

	mu     sync.Mutex
	conns  map[*viewer]bool
	ready  chan struct{} // closed once a stream is watched
	closed bool
	named  string
}

// viewer is one connection.
type viewer struct {
	conn   net.Conn
	stream carriage.Job
	// sending serialises the frames of one stream. header is the buffer of its header.
	sending sync.Mutex
	buffers net.Buffers
	header  []byte
}

// Listen opens a publishing end.
func Listen(ctx context.Context, options tcp.Options, address string) (*Publisher, error) {
	listener, err := options.Listen(ctx, address)
	if err != nil {
		return nil, err
	}
	return &Publisher{listener: listener, conns: make(map[*viewer]bool), ready: make(chan struct{})}, nil
}

// Address returns the listen address.
func (p *Publisher) Address() string { return p.listener.Addr().String() }

// Run implements carriage.End.
func (p *Publisher) Run(ctx context.Context, _ carriage.Taker) error {
	stop := context.AfterFunc(ctx, p.shut)
	defer stop()
	var serving sync.WaitGroup
	defer serving.Wait()
	defer p.shut()
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		v := &viewer{conn: conn}
		p.mu.Lock()
		if p.closed {
			_ = conn.Close()
		}
		p.conns[v] = false
		p.mu.Unlock()
		serving.Go(func() { p.serve(v) })
	}
}

// shut closes the listener and all connections.
func (p *Publisher) shut() {
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for v := range p.conns {
		_ = v.conn.Close()
	}
}

// serve reads a request, and waits for the end of the connection.
func (p *Publisher) serve(v *viewer) {
	defer func() {
		_ = v.conn.Close()
		p.mu.Lock()
		delete(p.conns, v)
		p.mu.Unlock()
	}()
	request := make([]byte, RequestSize)
	if _, err := io.ReadFull(v.conn, request); err != nil {
		return
	}
	stream, err := ParseRequest(request)
	if err != nil {
		return
	}
	p.mu.Lock()
	v.stream, p.conns[v] = stream, true
	p.named = tcp.Congestion(v.conn)
	select {
	case <-p.ready:
	default:
		close(p.ready)
	}
	p.mu.Unlock()
	// A viewer sends no data after the request.
	_, _ = io.Copy(io.Discard, v.conn)
}

// Ready implements carriage.End: it waits for a viewer.
func (p *Publisher) Ready(ctx context.Context) error {
	select {
	case <-p.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Wanted implements carriage.End: VR2Gather encodes all qualities, with or without viewers.
func (p *Publisher) Wanted(int, volumetric.Quality) bool { return true }

// Send implements carriage.End.
func (p *Publisher) Send(ctx context.Context, f *carriage.Frame) (d carriage.Departure, err error) {
	for _, v := range p.viewers(carriage.Job{Tile: f.Tile, Quality: f.Quality}) {
		begun := wallclock.Now()
		if v.send(ctx, f) != nil {
			// A viewer that closed the connection has switched to another quality.
			_ = v.conn.Close()
			continue
		}
		if d.Copies == 0 {
			d.First = begun
		}
		d.Last = wallclock.Now()
		d.Copies++
		p.counts.Sent.Add(int64(len(f.Bytes) + vr2gather.FrameHeaderSize))
	}
	return d, nil
}

// viewers returns the viewers of a stream.
func (p *Publisher) viewers(stream carriage.Job) (list []*viewer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for v, asked := range p.conns {
		if asked && v.stream == stream {
			list = append(list, v)
		}
	}
	return slices.Clip(list)
}

func (v *viewer) send(ctx context.Context, f *carriage.Frame) error {
	v.sending.Lock()
	defer v.sending.Unlock()
	stop := tcp.Until(ctx, v.conn)
	defer stop()
	v.header = AppendHeader(v.header[:0], len(f.Bytes), f.Capture)
	v.buffers = append(v.buffers[:0], v.header, f.Bytes)
	buffers := v.buffers
	_, err := buffers.WriteTo(v.conn)
	return err
}

// errPublisher is returned for a choice at a publishing end.
var errPublisher = errors.New("this end does not watch")

// Choose implements carriage.End.
func (p *Publisher) Choose(context.Context, []volumetric.Quality) error { return errPublisher }

// Traffic implements carriage.End.
func (p *Publisher) Traffic() carriage.Traffic {
	return carriage.Traffic{Sent: p.counts.Sent.Load(), Received: p.counts.Received.Load()}
}

// Congestion returns the kernel's name of the latest connection's congestion control.
func (p *Publisher) Congestion() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.named
}

// Close implements carriage.End.
func (p *Publisher) Close() error {
	p.shut()
	return nil
}
