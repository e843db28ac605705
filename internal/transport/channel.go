package transport

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/pion/datachannel"
	"github.com/pion/sctp"
)

// ErrChannel says that nothing can be sent on a data channel: it is not open yet, or its connection has ended.
var ErrChannel = errors.New("data channel is not open")

// leastWindow is what SCTP has under way at least, whatever it has lost: what is sent follows an estimate of our own, and SCTP's window, which begins at 4 kB and
// halves with each loss, would have frames wait beyond that. It is what a browser's socket takes at once: of 1 MB so much is lost there that SCTP comes to a tenth of the rate.
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

// channels are the data channels of a peer: those that it sends on, and those that the remote peer opens.
type channels struct {
	peer *Peer
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

// AddChannel adds a data channel under a label, which opens once the remote peer is connected and has taken the line with data channels. It needs no offer beyond the one with
// that line. Packets of other lines are reported by stream from then on (ReportsByStream): who sends on channels makes reports of what is acknowledged.
func (p *Peer) AddChannel(label string) *Channel {
	return p.channels.add(label)
}

// add adds a channel, which is opened if there is an association.
func (d *channels) add(label string) *Channel {
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
func (d *channels) open(association *sctp.Association, client bool) {
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

// openOne opens one channel. A channel that cannot be opened sends nothing, as on a connection that has ended. The caller holds
// the mutex.
func (d *channels) openOne(c *Channel) {
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
	if d.peer.run(placeChannel, func() { drain(channel) }) {
		c.open.Store(&openChannel{stream, channel})
	}
}

// drain is the goroutine that reads a channel until its connection ends. What comes is the remote peer's word that the channel is open, from which on messages need no order
// (RFC 8832 section 6), and nothing else that anybody reads.
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
