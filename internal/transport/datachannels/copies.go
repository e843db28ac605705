package datachannels

import (
	"time"

	"github.com/pion/datachannel"
)

const (
	// copyDelay is the time between two copies of a message. Most bursts of loss are shorter, and no retransmission of
	// SCTP or TCP is as soon. With independent losses of 5 %, one message in 400 loses both copies.
	copyDelay = 20 * time.Millisecond
	// maxUnacknowledged is the number of unacknowledged bytes above which no copies or replies are sent: the link does
	// not carry them, and SCTP queues without a bound.
	maxUnacknowledged = 64 << 10
)

// Copies is a data channel that this peer sends on, unordered and without retransmissions. The methods are safe for any
// goroutine.
type Copies struct {
	channel *Channel
	host    Host
}

// AddCopies adds a channel for copies with a label. Unlike Add, it does not count as sending (Sends).
func (d *Channels) AddCopies(label string) *Copies {
	return &Copies{d.add(label, datachannel.ChannelTypePartialReliableRexmitUnordered), d.host}
}

// Send sends a message once. Send reports false if the channel is not open or its link is too slow.
func (c *Copies) Send(message []byte) (sent bool) {
	if c.channel.Unacknowledged() > maxUnacknowledged {
		return false
	}
	c.host.Try(func() { sent = c.channel.Send(message) == nil })
	return sent
}

// SendTwice sends a message, and again after copyDelay. The caller must not change the message.
func (c *Copies) SendTwice(message []byte) {
	if c.Send(message) {
		time.AfterFunc(copyDelay, func() { c.Send(message) })
	}
}
