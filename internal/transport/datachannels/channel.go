// Package datachannels carries messages over the SCTP association of a peer connection, on channels opened by either
// side.
//
// SCTP's goroutines read the connection. Each channel has a goroutine that reads the channel. The methods of Channels
// and Channel are safe for any goroutine.
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

// ErrChannel means that a data channel cannot send: it is not open yet, or its connection has ended. A channel of the
// remote peer with a label that is too long ends with this error, too.
var ErrChannel = errors.New("data channel is not open")

// leastWindow is the minimum of SCTP's congestion window, in bytes. The sender follows the project's own estimate.
// SCTP's window begins at 4 kB and halves with each loss, and would delay frames further. 128 KiB are the size of the
// bursts that a browser's socket accepts. With 1 MB the socket loses so many packets that SCTP reaches a tenth of the
// rate.
const leastWindow = 128 << 10

// Channel is a data channel that this peer sends on, unordered. The methods are safe for any goroutine.
type Channel struct {
	label  string
	config *datachannel.Config
	open   atomic.Pointer[openChannel]
}

// openChannel is the state of a channel once there is an association.
type openChannel struct {
	stream  *sctp.Stream
	channel *datachannel.DataChannel
}

// Host is the peer connection of the channels.
type Host interface {
	// Try calls f and reports whether f returned. If f panics, the connection has failed.
	Try(f func()) (returned bool)
	// Run starts f in a goroutine. Run reports whether f was started: on a closed connection no goroutine starts.
	Run(f func()) bool
}

// Sink receives messages and acknowledgements, as transport.Sink does.
type Sink interface {
	Data(label string, message []byte, now time.Time)
	Acknowledged(now time.Time)
}

// Channels are the data channels of a peer connection.
type Channels struct {
	host Host
	logs logging.LoggerFactory
	// chunks limits the rate of SCTP chunks of all remote peers at one address.
	chunks *ratelimit.SharedSources
	// agreed is set once data channels are negotiated.
	agreed atomic.Bool
	// sends is set once the peer sends on channels.
	sends atomic.Bool

	mu          sync.Mutex
	association *sctp.Association
	all         []*Channel
	// next is the identifier of the next channel. Identifiers are even on the side that began the handshake (RFC 8832
	// section 6).
	next uint16
	// accepted are the channels of the remote peer, by label.
	accepted map[string]*openChannel
}

// New returns the channels of a connection. chunks limits the rate of SCTP chunks of all remote peers at one address.
func New(host Host, logs logging.LoggerFactory, chunks *ratelimit.SharedSources) *Channels {
	return &Channels{host: host, logs: logs, chunks: chunks, accepted: make(map[string]*openChannel)}
}

// SetAgreed records that data channels are negotiated.
func (d *Channels) SetAgreed() { d.agreed.Store(true) }

// Agreed reports whether data channels are negotiated.
func (d *Channels) Agreed() bool { return d.agreed.Load() }

// Any reports whether this side has channels.
func (d *Channels) Any() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.all) > 0
}

// Sends reports whether this side sends on channels.
func (d *Channels) Sends() bool { return d.sends.Load() }

// Add adds a reliable channel with a label. The channel opens once there is an association.
func (d *Channels) Add(label string) *Channel {
	d.sends.Store(true)
	return d.add(label, datachannel.ChannelTypeReliableUnordered)
}

func (d *Channels) add(label string, kind datachannel.ChannelType) *Channel {
	c := &Channel{label: label, config: d.config()}
	c.config.ChannelType, c.config.Label = kind, label
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, c)
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

// openOne opens one channel. If the channel cannot be opened, Send returns ErrChannel. The caller holds the mutex.
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

// drain is the goroutine that reads a sending channel until its connection ends. The remote peer acknowledges the
// opening, after which messages need no order (RFC 8832 section 6). Other messages are discarded.
func drain(channel *datachannel.DataChannel) {
	var nothing [64]byte
	for {
		if _, err := channel.Read(nothing[:]); err != nil && !errors.Is(err, io.ErrShortBuffer) {
			return
		}
	}
}

// accept records a channel of the remote peer. If it has opened several with one label, the newest has the replies.
func (d *Channels) accept(label string, o *openChannel) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.accepted[label] = o
}

// release forgets a channel of the remote peer.
func (d *Channels) release(label string, o *openChannel) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.accepted[label] == o {
		delete(d.accepted, label)
	}
}

// Reply sends a message on the channel that the remote peer opened with a label, with the reliability of that channel.
// The message is dropped if there is no such channel, or if more than 64 KiB on the channel are unacknowledged.
func (d *Channels) Reply(label string, message []byte) {
	d.mu.Lock()
	o := d.accepted[label]
	d.mu.Unlock()
	if o == nil || o.stream.BufferedAmount() > maxUnacknowledged {
		return
	}
	// On a channel that has ended, the message is lost.
	d.host.Try(func() { _, _ = o.channel.Write(message) })
}

// Send queues a copy of a message. It does not wait for the remote peer. The error wraps ErrChannel.
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

// Unacknowledged returns the number of message bytes that the remote peer has not acknowledged.
func (c *Channel) Unacknowledged() int {
	if o := c.open.Load(); o != nil {
		return int(o.stream.BufferedAmount())
	}
	return 0
}
