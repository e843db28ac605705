package consumer

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/lab/direct/stages"
	"github.com/volsfu/volsfu/lab/direct/stream"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Way sends reports to the producer.
type Way interface {
	SendOne(datagram []byte)
}

// watchInterval is the interval in which due requests and reports are sent. Requests are at least 10 ms apart, so that
// the interval delays them little. Reports about packets with ECN-CE are sent in time.
const watchInterval = 5 * time.Millisecond

// Adaptive is the inlet of payload v1. It receives packets as a carry.Taker from a socket, or as a transport.Sink from
// a peer connection.
type Adaptive struct {
	transport.NoOpSink
	consumer *Consumer

	config stream.ReceiverConfig
	// from is the address of the producer, if packets arrive by a socket.
	from netip.AddrPort

	// marks is signalled when a packet with ECN-CE arrives, unless awaited is set.
	marks chan struct{}

	mu       sync.Mutex
	receiver *stream.Receiver
	// awaited is set until the next step.
	awaited bool
}

// NewAdaptive returns an inlet. Expect sets the Wire of the configuration; packets before that are dropped. from is the
// producer's address if packets arrive by a socket, otherwise the zero value.
func NewAdaptive(c *Consumer, config stream.ReceiverConfig, from netip.AddrPort) *Adaptive {
	return &Adaptive{consumer: c, config: config, from: from, marks: make(chan struct{}, 1)}
}

// Expect implements carry.Sink.
func (a *Adaptive) Expect(wire stream.Wire) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.config.Wire = wire
	a.receiver = stream.NewReceiver(a.config)
}

// Datagram implements carry.Taker.
func (a *Adaptive) Datagram(datagram []byte, from netip.AddrPort, codepoint ecn.Codepoint, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if from == a.from && !stream.IsRTCP(datagram) {
		a.packet(datagram, codepoint, now)
	}
}

// RTP implements transport.Sink.
func (a *Adaptive) RTP(_ uint32, packet []byte, info *transport.PacketInfo) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.packet(packet, info.ECN, info.At)
}

// packet handles a packet that arrived with a codepoint. The caller holds the mutex.
func (a *Adaptive) packet(packet []byte, codepoint ecn.Codepoint, now time.Time) {
	if a.receiver == nil {
		return
	}
	if f := a.receiver.RTP(packet, codepoint, now); f != nil {
		a.consumer.take(arrival(f))
	}
	if codepoint == ecn.CE && !a.awaited {
		a.awaited = true
		select {
		case a.marks <- struct{}{}:
		default:
		}
	}
}

// arrival converts a frame of payload v1.
func arrival(f *payload.Frame) *Arrival {
	return &Arrival{
		Number: f.Number, Codec: volumetric.FourCC(f.Prefix.FourCC), Data: f.Data, First: f.First, Last: f.Last,
		Whole: time.Now(), Hash: stages.Hash(f.Data),
		release: f.Release,
	}
}

// Stats returns the counters of the receiver.
func (a *Adaptive) Stats() stream.ReceiverStats {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.receiver == nil {
		return stream.ReceiverStats{}
	}
	return a.receiver.Stats()
}

// Trip returns the round-trip time to the producer, 0 if it is unknown.
type Trip interface {
	RTT() time.Duration
}

// Watch sends reports and requests for missing packets until the context ends.
func (a *Adaptive) Watch(ctx context.Context, way Way, trip Trip) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	marked := time.NewTimer(watchInterval)
	marked.Stop()
	defer marked.Stop()
	var compounds [][]byte
	for {
		var now time.Time
		select {
		case now = <-ticker.C:
		case now = <-marked.C:
		case <-a.marks:
			if due := a.reportDue(); !due.IsZero() {
				marked.Reset(time.Until(due))
			}
			continue
		case <-ctx.Done():
			return
		}
		compounds = a.step(now, trip.RTT(), compounds[:0])
		for _, compound := range compounds {
			way.SendOne(compound)
		}
	}
}

// reportDue returns the time of the next report of arrivals, or the zero time if there is nothing to report.
func (a *Adaptive) reportDue() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.receiver.ReportDue()
}

// step appends the RTCP compound packets that are due.
func (a *Adaptive) step(now time.Time, rtt time.Duration, compounds [][]byte) [][]byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.awaited = false
	if a.receiver == nil {
		return compounds
	}
	return a.receiver.Step(now, rtt, compounds)
}
