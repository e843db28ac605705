// Package datachannels carries messages over the SCTP association of a peer connection: on channels that this side
// opens, and on channels that the remote peer opens.
//
// SCTP's goroutines read the connection. Each channel has a goroutine that reads it. The methods of Channels and
// Channel are safe for any goroutine.
package datachannels

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/datachannel"
	"github.com/pion/logging"
	"github.com/pion/sctp"

	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

// ErrChannel says that nothing can be sent on a data channel: it is not open yet, or its connection has ended.
var ErrChannel = errors.New("data channel is not open")

// leastWindow is what SCTP has under way at least, whatever it has lost: what is sent follows an estimate of our own,
// and SCTP's window, which begins at 4 kB and halves with each loss, would have frames wait beyond that. It is what a
// browser's socket takes at once: of 1 MB so much is lost there that SCTP comes to a tenth of the rate.
const leastWindow = 128 << 10

// Channel is a data channel that this peer sends on, reliable and unordered. Its methods are safe for any goroutine.
type Channel struct {
	label  string
	config *datachannel.Config
	open   atomic.Pointer[openChannel]
}

// openChannel is what a channel is once there is an association.
type openChannel struct {
	stream  *sctp.Stream
	channel *datachannel.DataChannel
}

// Host is the peer connection.
type Host interface {
	// Try calls f, and reports whether f returned. If f panics, the connection has failed.
	Try(f func()) (returned bool)
	// Run runs f in a goroutine, and reports whether it does: none begins once the connection is closed.
	Run(f func()) bool
}

// Sink takes what arrives, as transport.Sink does.
type Sink interface {
	Data(label string, message []byte, now time.Time)
	Acknowledged(now time.Time)
}

// Channels are the data channels of a peer connection.
type Channels struct {
	host Host
	logs logging.LoggerFactory
	// chunks bounds the SCTP chunks of all remote peers of an address.
	chunks *ratelimit.SharedSources
	// agreed is set once the peers have agreed on data channels.
	agreed atomic.Bool
	// sends is set once the peer sends on channels.
	sends atomic.Bool

	mu          sync.Mutex
	association *sctp.Association
	all         []*Channel
	// next is the identifier of the next one, even where this side began the handshake (RFC 8832 section 6).
	next uint16
}

// New returns the channels of a connection. chunks bounds the SCTP chunks of all remote peers of an address.
func New(host Host, logs logging.LoggerFactory, chunks *ratelimit.SharedSources) *Channels {
	return &Channels{host: host, logs: logs, chunks: chunks}
}

// SetAgreed notes that the peers have agreed on data channels.
func (d *Channels) SetAgreed() { d.agreed.Store(true) }

// Agreed reports whether the peers have agreed on data channels.
func (d *Channels) Agreed() bool { return d.agreed.Load() }

// Sends reports whether this side sends on channels.
func (d *Channels) Sends() bool { return d.sends.Load() }

// Add adds a channel under a label, which opens once there is an association.
func (d *Channels) Add(label string) *Channel {
	c := &Channel{label: label, config: d.config()}
	c.config.ChannelType, c.config.Label = datachannel.ChannelTypeReliableUnordered, label
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, c)
	d.sends.Store(true)
	if d.association != nil {
		d.openOne(c)
	}
	return c
}

// open opens the channels on an association.
func (d *Channels) open(association *sctp.Association, client bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.association, d.next = association, 1
	if client {
		d.next = 0
	}
	for _, c := range d.all {
		d.openOne(c)
	}
}

// openOne opens one channel. A channel that cannot be opened sends nothing, as on a connection that has ended. The
// caller holds the mutex.
func (d *Channels) openOne(c *Channel) {
	id := d.next
	d.next += 2
	stream, err := d.association.OpenStream(id, sctp.PayloadTypeWebRTCBinary)
	if err != nil {
		return
	}
	channel, err := datachannel.Client(stream, c.config)
	if err != nil {
		return
	}
	if d.host.Run(func() { drain(channel) }) {
		c.open.Store(&openChannel{stream, channel})
	}
}

// drain is the goroutine that reads a channel until its connection ends. What comes is the remote peer's word that the
// channel is open, from which on messages need no order (RFC 8832 section 6), and nothing else that anybody reads.
func drain(channel *datachannel.DataChannel) {
	var nothing [64]byte
	for {
		if _, err := channel.Read(nothing[:]); err != nil && !errors.Is(err, io.ErrShortBuffer) {
			return
		}
	}
}

// Send queues a message, which it does not keep. It does not wait for the remote peer.
func (c *Channel) Send(message []byte) error {
	o := c.open.Load()
	if o == nil {
		return fmt.Errorf("%w: %q", ErrChannel, c.label)
	}
	if _, err := o.channel.Write(message); err != nil {
		return fmt.Errorf("%w: %q: %w", ErrChannel, c.label, err)
	}
	return nil
}

// Unacknowledged is how many bytes of messages the remote peer has not acknowledged.
func (c *Channel) Unacknowledged() int {
	if o := c.open.Load(); o != nil {
		return int(o.stream.BufferedAmount())
	}
	return 0
}
