// Package dataflow has the flow of data messages between a participant and its room: their numbers and their limits.
package dataflow

import (
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/volsfu/volsfu/pkg/datamessage"
	"github.com/volsfu/volsfu/pkg/signal"
)

const (
	// DeliveryRate and deliveryBurst limit the data messages that all participants of a room receive together, per
	// second and at once. A delivery takes the room's goroutine some 5 µs with its copies, so the limit is a tenth of a
	// core. In a room of 100, two participants can use the rate.
	DeliveryRate, deliveryBurst = 20_000, 40_000
	// burst is the burst of a participant's data messages and bytes in seconds of their rates.
	burst = 2
)

// Config limits the data messages of one participant, long-term and per second.
type Config struct {
	Rate     float64
	ByteRate int
}

// Flow is the state of the data messages of one participant. The room's goroutine owns the Flow.
type Flow struct {
	// Received orders the messages of the client, Sent numbers and keeps the messages to the client.
	Received *datamessage.Receiver
	Sent     *datamessage.Sender
	// lossy is the number of the participant's last lossy message.
	lossy int64
	// messages and bytes limit the messages of the client.
	config          Config
	messages, bytes *rate.Limiter
}

// NewFlow returns the state of a participant without messages.
func NewFlow(config Config) Flow {
	return Flow{
		Received: datamessage.NewReceiver(), Sent: new(datamessage.Sender), config: config,
		messages: rate.NewLimiter(rate.Limit(config.Rate), max(1, int(burst*config.Rate))),
		bytes:    rate.NewLimiter(rate.Limit(config.ByteRate), burst*config.ByteRate),
	}
}

// Continue continues the numbers of a session of another node: those of the last reliable messages from and to the
// client. epoch counts the homes of the session.
func (f *Flow) Continue(received, sent int64, epoch uint64) {
	f.Received.Begin(received)
	f.Sent.Begin(sent)
	f.lossy = lossyBase(epoch)
}

// lossyBase returns the number before the first lossy message of a session's home, so that the numbers of each home are
// above those of the former homes.
func lossyBase(epoch uint64) int64 {
	const bits, most = 32, signal.MaxSeq >> 32
	return int64(min(epoch, most-1)) << bits
}

// NextLossy returns the number of the participant's next lossy message.
func (f *Flow) NextLossy() int64 {
	f.lossy++
	return f.lossy
}

// Allow returns an error if a message of the client exceeds a limit.
func (f *Flow) Allow(now time.Time, m *signal.Data) *signal.Error {
	switch {
	case !f.messages.AllowN(now, 1):
		return signal.Errorf(signal.CodeLimit,
			"the limit is %g data messages per second and %d at once (rooms.data_rate)", f.config.Rate,
			f.messages.Burst())
	case !f.bytes.AllowN(now, m.Size()):
		return signal.Errorf(signal.CodeLimit,
			"the limit is %d bytes of data messages per second and %d at once (rooms.data_byte_rate)",
			f.config.ByteRate, f.bytes.Burst())
	}
	return nil
}

// NewDeliveries limits the data messages that a room's participants receive.
func NewDeliveries() *rate.Limiter { return rate.NewLimiter(DeliveryRate, deliveryBurst) }

// LossCounters counts data messages of other nodes that were not delivered. They are safe for concurrent use.
type LossCounters struct{ Limit, Sender, Invalid, Queue atomic.Uint64 }

// Losses has numbers of data messages of other nodes that were not delivered, by cause.
type Losses struct {
	// Limit counts deliveries above the limit of the room, Sender messages of participants that the room does not have,
	// Invalid messages with an invalid field, and Queue lossy messages that found too many events waiting.
	Limit, Sender, Invalid, Queue uint64
}

// Read returns the present numbers.
func (c *LossCounters) Read() Losses {
	return Losses{
		Limit: c.Limit.Load(), Sender: c.Sender.Load(), Invalid: c.Invalid.Load(), Queue: c.Queue.Load(),
	}
}
