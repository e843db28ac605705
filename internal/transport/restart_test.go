package transport

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/internal/transport/datachannels"
	"github.com/volsfu/volsfu/test/wait"
)

// channelled is a peer that sends on a data channel to a foreigner, which counts the messages.
type channelled struct {
	t       *testing.T
	peer    *Peer
	channel *datachannels.Channel
	foreign *foreigner
	arrived atomic.Int64
}

// newChannelled connects both over a socket, and sends until the channel is open and all messages are acknowledged.
func newChannelled(t *testing.T, conn net.PacketConn) *channelled {
	t.Helper()
	endpoint, err := Attach(loopbackConfig(), conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = endpoint.Close() })
	peer, err := endpoint.NewPeer(newRecorder())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.Close() })
	peer.AddData()
	c := &channelled{t: t, peer: peer, channel: peer.AddChannel("slot"), foreign: newForeigner(t)}
	t.Cleanup(func() { _ = c.foreign.pc.Close() })
	c.foreign.pc.OnDataChannel(func(channel *webrtc.DataChannel) {
		channel.OnMessage(func(webrtc.DataChannelMessage) { c.arrived.Add(1) })
	})
	c.answered(c.offer(false))
	c.until("the channel is open", func() bool { return c.channel.Send([]byte("open")) == nil && c.arrived.Load() > 0 })
	c.until("everything is acknowledged", func() bool { return c.channel.Unacknowledged() == 0 })
	return c
}

func (c *channelled) offer(restart bool) string {
	c.t.Helper()
	text, err := c.peer.Offer(restart)
	if err != nil {
		c.t.Fatal(err)
	}
	return text
}

// answered applies the foreigner's answer to an offer.
func (c *channelled) answered(offer string) {
	c.t.Helper()
	if _, err := c.peer.Answered(c.foreign.answer(c.t, offer)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *channelled) until(what string, condition func() bool) {
	c.t.Helper()
	deadline := time.After(wait.Patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			c.t.Fatalf("timed out: %s", what)
		}
	}
}

// TestChannelsOutliveANewBeginningOfICE sends on a channel between an offer that restarts ICE and its answer, while
// there is no path to the remote peer. The message arrives once there is a path again.
func TestChannelsOutliveANewBeginningOfICE(t *testing.T) {
	c := newChannelled(t, newGate(t))
	before := c.arrived.Load()
	again := c.offer(true)
	for range 5 {
		if err := c.channel.Send([]byte("meanwhile")); err != nil {
			t.Fatal(err)
		}
	}
	c.answered(again)
	c.until("what was sent meanwhile arrives", func() bool { return c.arrived.Load() >= before+5 })
}
