package edge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/cilium/ebpf/ringbuf"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/netfn/edge/channel"
	"github.com/volsfu/volsfu/internal/netfn/wire"
)

const (
	// tickInterval is the time between steps of the sender and the receiver. The reaction to a path that dies takes up
	// to one interval longer.
	tickInterval = 5 * time.Millisecond
	// helloInterval is the time between hellos on a path, and between reports while no data arrives.
	helloInterval = 100 * time.Millisecond
	// reconcileInterval is the longest time between two looks at the host, and reconcilePause the shortest.
	reconcileInterval, reconcilePause = time.Second, 50 * time.Millisecond

	// A receiver that leaves says so goodbyes times, goodbyeInterval apart: on each path, so that one message arrives.
	// It then waits until no packet has arrived for drainQuiet, but at most drainLimit: the sender returns to plain
	// packets when it has read the message, or AliveFor after the last report before.
	goodbyes        = 3
	goodbyeInterval = 20 * time.Millisecond
	drainQuiet      = 150 * time.Millisecond
	drainLimit      = channel.AliveFor + 500*time.Millisecond

	// maxMessage is more than the longest control message.
	maxMessage = 2048
)

// Run runs the edge until the context ends, and then detaches it: programs, maps, pins and changed routes. It may be
// called once.
func (e *Edge) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	failed := make(chan error, 1)
	fail := func(err error) {
		if err == nil {
			return
		}
		select {
		case failed <- err:
		default:
		}
	}
	err := e.start(ctx, &group, fail)
	if err == nil {
		err = e.loop(ctx, failed)
	}
	stop()
	e.mu.Lock()
	e.closing = true
	if err := e.leave(); err != nil {
		e.log.Warn("the receiver left without waiting for packets in flight", zap.Error(err))
	}
	removed := e.remove()
	e.mu.Unlock()
	group.Wait()
	return errors.Join(err, removed)
}

// start starts the goroutines of the sockets, the samples and the network.
func (e *Edge) start(ctx context.Context, group *sync.WaitGroup, fail func(error)) error {
	changed, done := make(chan struct{}, 1), make(chan struct{})
	if err := watchNetwork(changed, done); err != nil {
		close(done)
		return err
	}
	group.Go(func() {
		defer close(done)
		fail(e.follow(ctx, changed))
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.read = func(p *edgePath, socket *controlSocket) {
		group.Go(func() { fail(e.readSocket(p.index, socket)) })
	}
	for _, p := range e.paths {
		if p.socket != nil {
			e.read(p, p.socket)
		}
	}
	if e.receiver == nil {
		return nil
	}
	reader, err := ringbuf.NewReader(e.receiver.objects.Samples)
	if err != nil {
		return fmt.Errorf("read the samples: %w", err)
	}
	group.Go(func() { fail(readSamples(reader, e.takeSamples)) })
	group.Go(func() {
		<-ctx.Done()
		_ = reader.Close()
	})
	return nil
}

// loop steps the edge until the context ends or a goroutine has failed.
func (e *Edge) loop(ctx context.Context, failed <-chan error) error {
	ticker := time.NewTicker(tickInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-ticker.C:
			if err := e.tick(monotonic()); err != nil {
				return err
			}
		}
	}
}

// follow reconciles the edge with the host whenever the host changes, and once per second.
func (e *Edge) follow(ctx context.Context, changed <-chan struct{}) error {
	timer := time.NewTicker(reconcileInterval)
	defer timer.Stop()
	pause := time.NewTimer(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-timer.C:
		}
		if err := e.reconcile(); err != nil && ctx.Err() == nil {
			// An interface may go while it is read. The next look repeats what failed.
			e.log.Warn("the edge cannot follow a change of the host", zap.Error(err))
		}
		pause.Reset(reconcilePause)
	}
}

// readSocket reads the control messages of a path until the socket is closed.
func (e *Edge) readSocket(index int, socket *controlSocket) error {
	data := make([]byte, maxMessage)
	for {
		n, from, err := socket.ReadFromUDPAddrPort(data)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			// An interface that goes down reports an error once. The socket is closed by reconcile.
			e.log.Debug("a control message could not be read", zap.Error(err))
			continue
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		if err := e.receive(index, data[:n], from, monotonic()); err != nil {
			return err
		}
	}
}

// receive takes a datagram. Datagrams of others are counted; the error is one of the maps.
func (e *Edge) receive(index int, data []byte, from netip.AddrPort, now time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		return nil
	}
	m, err := e.channel.Receive(index, data, now)
	if err != nil {
		e.warn(index, from, err)
		return nil
	}
	p := e.paths[index]
	if p.socket != nil {
		p.socket.to = from
	}
	if m.Restarted {
		// The other edge waits for a hello. Its sender has not said hello yet.
		e.nextHello, e.greeted = now, false
	}
	switch {
	case m.Kind == wire.KindHello && e.receiver != nil && len(m.Body) > 0:
		err = e.takeHello(index, m, from, now)
	case m.Kind == wire.KindReport && e.sender != nil:
		err = e.takeReport(m, now)
	}
	if errors.Is(err, wire.ErrHello) || errors.Is(err, wire.ErrReport) {
		e.malformed++
		e.warn(index, from, err)
		return nil
	}
	return err
}

// warn logs the first message of each kind that is dropped. Stale and replayed messages occur in normal operation:
// after a restart, and if a network repeats packets.
func (e *Edge) warn(index int, from netip.AddrPort, err error) {
	for _, kind := range []error{wire.ErrControlForged, wire.ErrControlReflected, channel.ErrMisplaced, wire.ErrHello,
		wire.ErrReport} {
		if errors.Is(err, kind) && !e.warned[kind] {
			e.warned[kind] = true
			e.log.Warn("a control message was dropped; further ones of this kind are only counted",
				zap.String("path", e.config.Paths[index].Name), zap.Stringer("from", from), zap.Error(err),
				zap.String("cause", causes[kind]))
		}
	}
}

// causes lists causes of dropped control messages that an operator can check.
var causes = map[error]string{
	wire.ErrControlForged: "the key files or the names of the edges (name, peer) differ, or someone forges messages",
	channel.ErrMisplaced:  "the edges list their paths in different orders",
	wire.ErrHello:         "the edges are of different versions",
	wire.ErrReport:        "the edges are of different versions",
}

func (e *Edge) takeHello(index int, m channel.Message, from netip.AddrPort, now time.Duration) error {
	if err := e.receiver.learn(index, from.Addr()); err != nil {
		return err
	}
	if err := e.receiver.hello(index, m.Body, now); err != nil {
		return err
	}
	if !e.greeted {
		e.greeted, e.nextReport = true, now
	}
	return nil
}

func (e *Edge) takeReport(m channel.Message, now time.Duration) error {
	var err error
	if len(m.Body) > 0 {
		err = e.sender.report(m.Body, now)
	}
	return errors.Join(err, e.renew())
}

// renew writes the lease of the channel. Before the first report of a run, the lease of an earlier process goes on.
func (e *Edge) renew() error {
	lease, known := e.channel.Lease()
	if !known {
		return nil
	}
	return e.sender.setLease(lease)
}

// takeSamples hands samples to the observers.
func (e *Edge) takeSamples(records []ringbuf.Record) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		return nil
	}
	for i := range records {
		if err := e.receiver.sample(records[i].RawSample); err != nil {
			return err
		}
	}
	return e.sendReports(monotonic())
}

// tick steps the sender and the receiver, and sends the control messages that are due.
func (e *Edge) tick(now time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sender != nil {
		if err := e.sender.step(now); err != nil {
			return err
		}
		if alive := e.sender.leased(now); alive != e.peerAlive {
			e.peerAlive = alive
			e.log.Info("the receiver at the other edge has come or gone", zap.Bool("alive", alive))
		}
		if now >= e.nextHello {
			e.nextHello = now + helloInterval
			if err := e.sendHellos(now); err != nil {
				return err
			}
		}
	}
	if e.receiver != nil {
		if err := e.receiver.step(now); err != nil {
			return err
		}
		if err := e.sendReports(now); err != nil {
			return err
		}
	}
	return e.answer(now)
}

func (e *Edge) sendHellos(now time.Duration) error {
	hello := e.sender.hello(now)
	body, err := hello.AppendBinary(nil)
	if err != nil {
		return fmt.Errorf("encode a hello: %w", err)
	}
	return e.broadcast(wire.KindHello, body, now, &e.hellos)
}

// sendReports sends the reports that are due. Without any, it sends an empty one per helloInterval as long as the other
// edge lives. No report leaves before the first hello: a report makes the sender copy, and the receiver must know the
// epoch of the copies.
func (e *Edge) sendReports(now time.Duration) error {
	if !e.greeted {
		return nil
	}
	bodies, err := e.receiver.reports(now)
	if err != nil {
		return err
	}
	if len(bodies) == 0 && now >= e.nextReport && e.channel.PeerAlive(now) {
		bodies = [][]byte{nil}
	}
	for _, body := range bodies {
		e.nextReport = now + helloInterval
		if err := e.broadcast(wire.KindReport, body, now, &e.reports); err != nil {
			return err
		}
	}
	return nil
}

// answer answers a message of an unknown run of the other edge.
func (e *Edge) answer(now time.Duration) error {
	index, message, err := e.channel.Answer(now)
	if err != nil || message == nil {
		return err
	}
	e.write(e.paths[index], message, &e.hellos)
	return nil
}

// broadcast sends a message on every path, and counts.
func (e *Edge) broadcast(kind uint8, body []byte, now time.Duration, sent *uint64) error {
	for _, p := range e.paths {
		if p.socket == nil {
			continue
		}
		message, err := e.channel.Message(kind, p.index, body, now)
		if err != nil {
			return err
		}
		e.write(p, message, sent)
	}
	return nil
}

// write sends a message on a path. A path that cannot carry messages shows in reports and in its state.
func (e *Edge) write(p *edgePath, message []byte, sent *uint64) {
	if p.socket == nil {
		return
	}
	if _, err := p.socket.WriteToUDPAddrPort(message, p.socket.to); err == nil {
		*sent++
	}
}

// leave lets the other edge return to plain packets before the receiver's programs go, and waits for packets in flight.
// The sender of this edge returns to plain packets at once.
func (e *Edge) leave() error {
	began := monotonic()
	if e.sender != nil {
		if err := e.sender.setLease(0); err != nil {
			return err
		}
	}
	if e.receiver == nil || !e.channel.PeerAlive(began) {
		return nil
	}
	last, err := e.receiver.allReceived()
	if err != nil {
		return err
	}
	quietSince := began
	for sent := 0; ; sent++ {
		now := monotonic()
		if sent < goodbyes {
			if err := e.sayGoodbye(now); err != nil {
				return err
			}
		}
		packets, err := e.receiver.allReceived()
		if err != nil {
			return err
		}
		if packets != last {
			last, quietSince = packets, now
		}
		if now-quietSince >= drainQuiet || now-began >= drainLimit {
			return nil
		}
		time.Sleep(goodbyeInterval)
	}
}

func (e *Edge) sayGoodbye(now time.Duration) error {
	for _, p := range e.paths {
		message, err := e.channel.Closing(p.index, now)
		if err != nil {
			return err
		}
		e.write(p, message, &e.reports)
	}
	return nil
}
