package direct

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/lab/baseline/chunks"
	"github.com/volsfu/volsfu/lab/direct/carry"
	"github.com/volsfu/volsfu/lab/direct/individual"
	"github.com/volsfu/volsfu/lab/direct/producer"
	"github.com/volsfu/volsfu/lab/direct/rendezvous"
	"github.com/volsfu/volsfu/lab/direct/stages"
	"github.com/volsfu/volsfu/lab/direct/stream"
	"github.com/volsfu/volsfu/lab/wallclock"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// sender is the producer's side of one rendezvous.
type sender struct {
	flags    *producing
	settings settings
	source   capture.Source
	control  *individual.Control
	gaze     *producer.Gaze
	books    *stages.Books
	conn     *rendezvous.Conn
	console  io.Writer
	log      *slog.Logger

	// other is the consumer's hello, own this side's.
	other, own  rendezvous.Hello
	negotiation chan rendezvous.Message
	untold      outbox[stages.Sent]
	// outlet handles the consumer's reports; it is nil before it is opened. aimed is closed when the consumer's
	// datagrams have shown its address.
	outlet atomic.Pointer[producer.Adaptive]
	aimed  chan struct{}
	udp    *carry.UDP
	peer   *transport.Peer
}

const (
	// negotiationBacklog is the number of negotiation messages that may wait: a description, and the candidates of
	// every interface.
	negotiationBacklog = 64
	// connectTimeout bounds the time for establishing the connection.
	connectTimeout = 15 * time.Second
	// lastFrames is the time limit for the last frames and their records.
	lastFrames = time.Second
)

// errUnreachable means that no datagram of the consumer arrived.
var errUnreachable = errors.New("no datagram of the consumer arrived")

// Sent implements producer.Ledger.
func (s *sender) Sent(sent *stages.Sent) {
	s.books.Sent(sent)
	s.untold.put(*sent)
}

// run produces for the consumer.
func (s *sender) run(ctx context.Context) (summary *Summary, err error) {
	summary = &Summary{Role: rendezvous.RoleProducer, Transport: s.flags.transport, Mode: s.flags.mode}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel(nil)
	// The goodbye is sent before the connection is closed. Otherwise the other side would report a failure.
	way, err := s.connect(ctx, cancel, &running)
	if err != nil {
		s.conn.Close()
		_, closing := s.books.End(0)
		return summary, errors.Join(err, closing)
	}
	defer way.Close()
	defer s.conn.Close()
	took, err := s.produce(ctx, way, &running, summary)
	report, closing := s.books.End(stages.At(wallclock.Now()))
	summary.rates(report, took)
	if outlet := s.outlet.Load(); outlet != nil {
		summary.Estimate = int64(outlet.Estimate())
	}
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, rendezvous.ErrEnded) &&
		!errors.Is(cause, context.Canceled) {
		err = cause
	}
	return summary, errors.Join(err, closing)
}

// sendingWay is a connection to the other side.
type sendingWay interface {
	producer.Way
	chunks.Outlet
	Close()
}

// connect exchanges hellos with the consumer and establishes the connection.
func (s *sender) connect(ctx context.Context, cancel context.CancelCauseFunc, running *sync.WaitGroup) (way sendingWay,
	err error) {
	info := s.source.Info()
	s.own = rendezvous.Hello{
		Role: rendezvous.RoleProducer, SSRC: rand.Uint32(), Transport: s.flags.transport, Mode: s.flags.mode,
		MediaSSRC: rand.Uint32(), RepeatSSRC: rand.Uint32(), ByStream: s.flags.feedback != feedbackTransport,
		Codec: s.settings.codec.FourCC().String(), FrameRate: info.FrameRate, Box: info.Box,
		SourceDescription: info.Description,
	}
	ctx, done := context.WithTimeout(ctx, connectTimeout)
	defer done()
	if s.flags.transport == rendezvous.TransportUDP {
		if s.udp, err = carry.OpenUDP(localAddress(s.conn.Remote())); err != nil {
			return nil, err
		}
		s.own.Port, s.aimed = s.udp.Port(), make(chan struct{})
	}
	s.other, err = s.conn.Greet(ctx, s.own)
	if err == nil {
		running.Go(func() { cancel(s.handleMessages()) })
		if s.udp == nil {
			var peer *carry.WebRTC
			route := carry.Route{Remote: s.conn.Remote(), STUN: s.flags.stun}
			if peer, err = carry.Offer(ctx, s.conn, s.negotiation, route, reports{sender: s}); err == nil {
				s.peer = peer.Peer()
				s.log.Info("connected", "consumer", s.conn.Remote())
				return peer, nil
			}
			return nil, err
		}
		running.Go(func() {
			if err := s.udp.Run(s); err != nil {
				cancel(err)
			}
		})
		select {
		case <-s.aimed:
			s.log.Info("connected", "consumer", s.conn.Remote())
			return plainUDP{s.udp}, nil
		case <-ctx.Done():
			err = fmt.Errorf("%w: %w", errUnreachable, context.Cause(ctx))
		}
	}
	if s.udp != nil {
		_ = s.udp.Close()
	}
	return nil, err
}

// plainUDP is a socket whose error on closing is ignored.
type plainUDP struct{ *carry.UDP }

func (u plainUDP) Close() { _ = u.UDP.Close() }

// handleMessages handles the consumer's messages until the connection ends. It returns the reason of the end.
func (s *sender) handleMessages() error {
	for m := range s.conn.Messages() {
		received := wallclock.Now()
		switch m.Type {
		case rendezvous.TypeViewpoint:
			s.gaze.Look(m.Viewpoint)
		case rendezvous.TypeTime:
			if err := s.conn.Send(m.Time.Answer(received, wallclock.Now())); err != nil {
				return err
			}
		case rendezvous.TypeReceived:
			for i := range m.Received {
				s.books.Received(&m.Received[i].Received)
			}
		case rendezvous.TypeAnswer, rendezvous.TypeCandidate:
			select {
			case s.negotiation <- m:
			default: // more messages than any negotiation has
			}
		}
	}
	return s.conn.Err()
}

// produce produces and sends until the context ends or the time limit is reached, and waits for the last frames. It
// returns the duration of capturing.
func (s *sender) produce(ctx context.Context, way sendingWay, running *sync.WaitGroup, summary *Summary) (time.Duration,
	error) {
	outlet, send, err := s.open(way)
	if err != nil {
		return 0, err
	}
	p := producer.New(producer.Config{
		Source: s.source, Codec: s.settings.codec, Params: s.settings.params, Control: s.control, Gaze: s.gaze,
		Outlet:     outlet,
		Sequential: s.flags.mode == rendezvous.ModePaper002, Limit: s.flags.count, Log: s.log,
	})
	sending, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSending()
	var sender sync.WaitGroup
	sender.Go(func() { send(sending) })
	telling, stopTelling := context.WithCancel(context.WithoutCancel(ctx))
	defer stopTelling()
	var teller sync.WaitGroup
	teller.Go(func() { s.tell(telling, outlet) })
	capturing, stop := peer.Limit(ctx, s.flags.seconds)
	defer stop()
	if w, ok := way.(*carry.WebRTC); ok {
		running.Go(func() {
			if w.Watch(capturing, s.conn, s.negotiation) != nil {
				stop()
			}
		})
	}
	began := time.Now()
	err = p.Run(capturing)
	took := time.Since(began)
	stop()
	s.settle(ctx, outlet.Waiting)
	stopSending()
	sender.Wait()
	s.settle(ctx, s.books.Waiting)
	stopTelling()
	teller.Wait()
	counts := p.Counts()
	summary.Captured, summary.Missed, summary.Superseded, summary.Refused = counts.Captured, counts.Missed,
		counts.Superseded, counts.Failed
	return took, err
}

// settle waits while waiting returns true, at most for lastFrames.
func (s *sender) settle(ctx context.Context, waiting func() bool) {
	for end := time.Now().Add(lastFrames); waiting() && ctx.Err() == nil && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// waitingOutlet is an outlet that reports whether frames wait to be sent.
type waitingOutlet interface {
	producer.Outlet
	Waiting() bool
}

// open returns the outlet and the function that runs it.
func (s *sender) open(way sendingWay) (waitingOutlet, func(context.Context), error) {
	if s.flags.mode == rendezvous.ModePaper002 {
		o := producer.NewPaper002(s.flags.gap, way, s)
		return o, o.Run, nil
	}
	config := s.settings.sender
	config.Budget = time.Duration(float64(time.Second) / s.source.Info().FrameRate)
	if w, ok := way.(*carry.WebRTC); ok {
		config.Wire = w.Wire()
	} else {
		config.Wire = plainWire(&s.own)
	}
	o, err := producer.NewAdaptive(config, volumetric.Bitrate(s.flags.rate), way, s)
	if err != nil {
		return nil, nil, err
	}
	s.outlet.Store(o)
	return o, o.Run, nil
}

// plainWire returns the streams over plain datagrams: dynamic payload types, the first header extension, and the SSRCs
// of the hello.
func plainWire(h *rendezvous.Hello) stream.Wire {
	return stream.Wire{SSRC: h.MediaSSRC, RetransmissionSSRC: h.RepeatSSRC, PayloadType: 96,
		RetransmissionPayloadType: 97, Extension: 1, ByStream: h.ByStream}
}

// tell sends records of sent frames to the consumer and prints progress.
func (s *sender) tell(ctx context.Context, outlet producer.Outlet) {
	ticker, lines := time.NewTicker(tellInterval), time.NewTicker(lineInterval)
	defer ticker.Stop()
	defer lines.Stop()
	before, at := s.books.Report(), time.Now()
	for {
		select {
		case <-ticker.C:
			s.tellSent()
		case now := <-lines.C:
			report := s.books.Report()
			_, _ = fmt.Fprintln(s.console, progress(&report, &before, now.Sub(at), outlet.Estimate()))
			before, at = report, now
		case <-ctx.Done():
			s.tellSent()
			return
		}
	}
}

func (s *sender) tellSent() {
	if list := s.untold.take(); len(list) > 0 {
		// If sending fails, the connection is broken, and its reader returns the error.
		_ = s.conn.Send(rendezvous.Message{Type: rendezvous.TypeSent, Sent: list})
	}
}

// Datagram implements carry.Taker. A greeting shows the consumer's address, whose IP address must be that of the
// websocket. Other datagrams are reports.
func (s *sender) Datagram(datagram []byte, from netip.AddrPort, _ ecn.Codepoint, now time.Time) {
	if from.Addr().Unmap() != s.conn.Remote() || !stream.IsRTCP(datagram) {
		return
	}
	if len(datagram) < 8 || binary.BigEndian.Uint32(datagram[4:]) != s.other.SSRC {
		return
	}
	if !s.udp.Aimed() {
		s.udp.Aim(from)
		close(s.aimed)
	}
	for _, packet := range stream.Compound(datagram) {
		s.RTCP(packet, now)
	}
}

// RTCP handles one RTCP packet of the consumer.
func (s *sender) RTCP(packet []byte, now time.Time) {
	outlet := s.outlet.Load()
	if outlet == nil {
		return
	}
	rtt := time.Duration(0)
	if s.peer != nil {
		rtt = s.peer.RTT()
	}
	outlet.RTCP(packet, now, rtt)
}

// reports is the sink of the producer's peer connection. The consumer sends RTCP only.
type reports struct {
	transport.NoOpSink
	sender *sender
}

// RTCP implements transport.Sink.
func (r reports) RTCP(packet []byte, now time.Time) { r.sender.RTCP(packet, now) }
