package direct

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/render"
	"github.com/volsfu/volsfu/internal/peer/viewtrace"
	"github.com/volsfu/volsfu/lab/direct/carry"
	"github.com/volsfu/volsfu/lab/direct/consumer"
	"github.com/volsfu/volsfu/lab/direct/rendezvous"
	"github.com/volsfu/volsfu/lab/direct/stages"
	"github.com/volsfu/volsfu/lab/direct/stream"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// receiver is the consumer's side of one rendezvous.
type receiver struct {
	flags   *consuming
	trace   *viewtrace.Trace // nil without recorded viewpoints
	easel   *easel
	books   *stages.Books
	conn    *rendezvous.Conn
	console io.Writer
	log     *slog.Logger

	// other is the producer's hello, ssrc the SSRC of this side's reports.
	other       rendezvous.Hello
	ssrc        uint32
	clock       *rendezvous.Clock
	negotiation chan rendezvous.Message
	untold      outbox[rendezvous.Received]
	consumer    *consumer.Consumer
	// adaptive or paper002 is the inlet, according to the producer's mode.
	adaptive *consumer.Adaptive
	paper002 *consumer.Paper002
	arrived  atomic.Bool
}

// Received implements consumer.Ledger.
func (r *receiver) Received(received *stages.Received) {
	r.books.Received(received)
	r.untold.put(rendezvous.Received{Number: received.Frame, Received: *received})
}

// run consumes the frames of the producer.
func (r *receiver) run(ctx context.Context) (summary *Summary, err error) {
	summary = &Summary{Role: rendezvous.RoleConsumer}
	ctx, cancel := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	way, err := r.connect(ctx, cancel, &running)
	took := time.Duration(0)
	if err == nil {
		summary.Transport, summary.Mode = r.other.Transport, r.other.Mode
		began := time.Now()
		r.consume(ctx, way)
		took = time.Since(began)
		way.Close()
	}
	cause := context.Cause(ctx)
	cancel(nil)
	if err == nil && cause != nil && !errors.Is(cause, rendezvous.ErrEnded) && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	report, closing := r.books.End(stages.At(r.clock.Producer(time.Now())))
	summary.rates(report, took)
	summary.ClockBound = float64(r.clock.Bound()) / float64(time.Millisecond)
	r.counts(summary)
	r.conn.Close()
	running.Wait()
	return summary, errors.Join(err, closing)
}

// counts adds the counters of the inlet.
func (r *receiver) counts(s *Summary) {
	switch {
	case r.adaptive != nil:
		stats := r.adaptive.Stats()
		s.Packets, s.NACKs = stats.Packets, stats.NACKs.Asked
		s.PacketsRecovered, s.PacketsLost = stats.NACKs.Recovered, stats.NACKs.Recovered+stats.NACKs.Lost
	case r.paper002 != nil:
		stats, holes := r.paper002.Stats()
		s.Packets, s.PacketsLost = stats.Packets, uint64(holes)
	}
}

// The number of frames that may wait for decoding: only the newest one, except with paper 002, whose threads pass on
// every frame.
const (
	newestWins   = 1
	paper002Room = 10
)

// receivingWay is a connection to the other side.
type receivingWay interface {
	consumer.Way
	Close()
}

// connect exchanges hellos with the producer and establishes the connection.
func (r *receiver) connect(ctx context.Context, cancel context.CancelCauseFunc,
	running *sync.WaitGroup) (way receivingWay, err error) {
	within, done := context.WithTimeout(ctx, connectTimeout)
	defer done()
	r.ssrc = rand.Uint32()
	if r.other, err = r.conn.Greet(within, rendezvous.Hello{Role: rendezvous.RoleConsumer, SSRC: r.ssrc}); err != nil {
		return nil, err
	}
	r.log.Info("met", "producer", r.conn.Remote(), "source", r.other.SourceDescription, "transport", r.other.Transport,
		"mode", r.other.Mode)
	if r.easel != nil {
		r.easel.view.fit(r.other.Box)
	}
	room := newestWins
	if r.other.Mode == rendezvous.ModePaper002 {
		room = paper002Room
	}
	r.consumer = consumer.New(room, r, r.clock, r.easel.stage(), r.log)
	running.Go(func() { cancel(r.handleMessages()) })
	config := stream.ReceiverConfig{Sender: r.ssrc}
	if r.other.Transport == rendezvous.TransportWebRTC {
		r.adaptive = consumer.NewAdaptive(r.consumer, config, netip.AddrPort{})
		route := carry.Route{Remote: r.conn.Remote(), STUN: r.flags.stun, ByStream: r.other.ByStream}
		w, err := carry.Answer(within, r.conn, r.negotiation, route, r.adaptive)
		if err != nil {
			return nil, err
		}
		running.Go(func() {
			if err := w.Watch(ctx, r.conn, r.negotiation); err != nil {
				// A producer that ends sends a message about that, perhaps a moment later.
				select {
				case <-time.After(lastFrames):
					cancel(err)
				case <-ctx.Done():
				}
			}
		})
		r.arrived.Store(true)
		return w, nil
	}
	return r.listen(ctx, config, cancel, running)
}

// listen opens a UDP socket and sends greetings to the producer until the first datagram arrives.
func (r *receiver) listen(ctx context.Context, config stream.ReceiverConfig, cancel context.CancelCauseFunc,
	running *sync.WaitGroup) (receivingWay, error) {
	socket, err := carry.OpenUDP(localAddress(r.conn.Remote()))
	if err != nil {
		return nil, err
	}
	from := netip.AddrPortFrom(r.conn.Remote(), r.other.Port)
	socket.Aim(from)
	var taker carry.Taker
	if r.other.Mode == rendezvous.ModePaper002 {
		r.paper002 = consumer.NewPaper002(r.consumer, volumetric.FourCC([]byte(r.other.Codec)), payload.MaxFrameBytes,
			from)
		taker = r.paper002
	} else {
		r.adaptive = consumer.NewAdaptive(r.consumer, config, from)
		r.adaptive.Expect(plainWire(&r.other))
		taker = r.adaptive
	}
	running.Go(func() {
		if err := socket.Run(firstTaker{taker, &r.arrived}); err != nil {
			cancel(err)
		}
	})
	running.Go(func() { r.greet(ctx, socket) })
	return plainUDP{socket}, nil
}

// firstTaker records that a datagram has arrived.
type firstTaker struct {
	carry.Taker
	arrived *atomic.Bool
}

// Datagram implements carry.Taker.
func (f firstTaker) Datagram(datagram []byte, from netip.AddrPort, codepoint ecn.Codepoint, now time.Time) {
	f.arrived.Store(true)
	f.Taker.Datagram(datagram, from, codepoint, now)
}

// greetInterval is the interval of greetings to a producer that has sent nothing yet.
const greetInterval = 50 * time.Millisecond

// greet sends empty receiver reports until the first datagram arrives. They show the consumer's address to the producer
// and open the mappings of address translators on the path.
func (r *receiver) greet(ctx context.Context, socket *carry.UDP) {
	greeting, err := (&rtcp.ReceiverReport{SSRC: r.ssrc}).Marshal()
	if err != nil {
		return // marshalling an empty report does not fail
	}
	ticker := time.NewTicker(greetInterval)
	defer ticker.Stop()
	for !r.arrived.Load() {
		socket.SendOne(greeting)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// handleMessages handles the producer's messages until the connection ends. It returns the reason of the end.
func (r *receiver) handleMessages() error {
	for m := range r.conn.Messages() {
		switch m.Type {
		case rendezvous.TypeSent:
			for i := range m.Sent {
				r.books.Sent(&m.Sent[i])
			}
		case rendezvous.TypeTime:
			r.clock.Answered(m.Time, time.Now())
		case rendezvous.TypeOffer, rendezvous.TypeCandidate:
			select {
			case r.negotiation <- m:
			default: // more messages than any negotiation has
			}
		}
	}
	return r.conn.Err()
}

// consume decodes until the context ends or the time limit is reached.
func (r *receiver) consume(ctx context.Context, way receivingWay) {
	ctx, stop := peer.Limit(ctx, r.flags.seconds)
	defer stop()
	var running sync.WaitGroup
	running.Go(func() { r.consumer.Run(ctx) })
	running.Go(func() { r.tell(ctx) })
	if r.adaptive != nil {
		running.Go(func() { r.adaptive.Watch(ctx, way, r.clock) })
	}
	if r.trace != nil {
		running.Go(func() { r.trace.Replay(ctx, r) })
	}
	running.Wait()
}

// SetViewpoint implements viewtrace.Viewer. It sends the viewpoint to the producer and moves the view of the pictures.
func (r *receiver) SetViewpoint(v client.Viewpoint) {
	// If sending fails, the connection is broken, and its reader returns the error.
	_ = r.conn.Send(rendezvous.Message{Type: rendezvous.TypeViewpoint, Viewpoint: &signal.Viewpoint{
		At: v.At.UnixMicro(), Position: v.Position, Orientation: v.Orientation, FOV: v.FOV * 180 / math.Pi,
		Aspect: v.Aspect,
	}})
	if r.easel != nil {
		r.easel.view.follow(render.View{Position: v.Position, Orientation: v.Orientation, FOV: v.FOV})
	}
}

// firstQuestions is the number of clock requests that are sent immediately. After them, one is sent per second.
const firstQuestions = 5

// tell sends records of received frames and clock requests to the producer, and prints progress.
func (r *receiver) tell(ctx context.Context) {
	ticker := time.NewTicker(tellInterval)
	defer ticker.Stop()
	before, at := r.books.Report(), time.Now()
	for count := 0; ; count++ {
		if count < firstQuestions || count%int(lineInterval/tellInterval) == 0 {
			_ = r.conn.Send(r.clock.Ask(time.Now()))
		}
		select {
		case now := <-ticker.C:
			r.tellReceived()
			if now.Sub(at) >= lineInterval {
				report := r.books.Report()
				_, _ = fmt.Fprintln(r.console, progress(&report, &before, now.Sub(at), 0))
				before, at = report, now
			}
		case <-ctx.Done():
			r.tellReceived()
			return
		}
	}
}

func (r *receiver) tellReceived() {
	if list := r.untold.take(); len(list) > 0 {
		_ = r.conn.Send(rendezvous.Message{Type: rendezvous.TypeReceived, Received: list})
	}
}
