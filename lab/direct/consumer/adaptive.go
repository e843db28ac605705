package consumer

import (
	"context"
	"net/netip"
	"sync"
	"time"

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
// the interval delays them little.
const watchInterval = 5 * time.Millisecond

// Adaptive is the inlet of payload v1. It receives packets as a carry.Taker from a socket, or as a transport.Sink from
// a peer connection.
type Adaptive struct {
	transport.NoOpSink
	consumer *Consumer

	config stream.ReceiverConfig
	// from is the address of the producer, if packets arrive by a socket.
	from netip.AddrPort

	mu       sync.Mutex
	receiver *stream.Receiver
}

// NewAdaptive returns an inlet. Expect sets the Wire of the configuration; packets before that are dropped. from is the
// producer's address if packets arrive by a socket, otherwise the zero value.
func NewAdaptive(c *Consumer, config stream.ReceiverConfig, from netip.AddrPort) *Adaptive {
	return &Adaptive{consumer: c, config: config, from: from}
}

// Expect implements carry.Sink.
func (a *Adaptive) Expect(wire stream.Wire) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.config.Wire = wire
	a.receiver = stream.NewReceiver(a.config)
}

// Datagram implements carry.Taker.
func (a *Adaptive) Datagram(datagram []byte, from netip.AddrPort, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if from == a.from && !stream.IsRTCP(datagram) {
		a.packet(datagram, now)
	}
}

// RTP implements transport.Sink.
func (a *Adaptive) RTP(_ uint32, packet []byte, info *transport.PacketInfo) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.packet(packet, info.At)
}

func (a *Adaptive) packet(packet []byte, now time.Time) {
	if a.receiver == nil {
		return
	}
	if f := a.receiver.RTP(packet, now); f != nil {
		a.consumer.take(arrival(f))
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
	var compounds [][]byte
	for {
		select {
		case now := <-ticker.C:
			rtt := trip.RTT()
			a.mu.Lock()
			compounds = compounds[:0]
			if a.receiver != nil {
				compounds = a.receiver.Step(now, rtt, compounds)
			}
			a.mu.Unlock()
			for _, compound := range compounds {
				way.SendOne(compound)
			}
		case <-ctx.Done():
			return
		}
	}
}
