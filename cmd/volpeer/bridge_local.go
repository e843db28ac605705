package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/bridge"
	"github.com/volsfu/volsfu/internal/udp"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// connector is the bridge's end of the datagrams between it and the connector. One goroutine reads; sending is safe for concurrent use.
type connector struct {
	port  *udp.Port
	tally *bridge.Tally
	log   *slog.Logger
	// frames, choices, views and poses bring what the connector sends. Of all but frames only the newest is kept.
	frames  chan<- *bridge.Frame
	choices chan string
	views   chan *signal.Viewpoint
	poses   chan *signal.Pose
	// answered is closed when the connector has answered.
	answered chan struct{}

	mu    sync.Mutex
	inlet *bridge.Inlet
}

// receiveBuffer is asked for, for bursts of frames that come while this process does not run: 27 tile frames of 100 kB. Systems give less where they have a limit.
const receiveBuffer = 8 << 20

// stepInterval is how often it is looked whether a ready datagram is due, or a frame past its time.
const stepInterval = 20 * time.Millisecond

// openConnector listens where the flags say.
func openConnector(b *bridging, frames chan<- *bridge.Frame, tally *bridge.Tally, log *slog.Logger) (*connector, error) {
	port, err := udp.Listen(udp.Config{Address: b.local, ReceiveBuffer: receiveBuffer})
	if err != nil {
		return nil, fmt.Errorf("listen for the connector: %w", err)
	}
	home := b.local.Addr()
	if home.IsUnspecified() {
		home = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	c := &connector{
		port: port, tally: tally, log: log, frames: frames, answered: make(chan struct{}),
		choices: make(chan string, 1), views: make(chan *signal.Viewpoint, 1), poses: make(chan *signal.Pose, 1),
		inlet: bridge.NewInlet(netip.AddrPortFrom(home, b.local.Port()+1), b.layout, b.input, tally),
	}
	if b.required != nil {
		c.inlet.Handshake.Require(b.required)
	}
	return c, nil
}

// read takes datagrams until the socket is closed.
func (c *connector) read() {
	inbox := udp.NewInbox()
	socket := c.port.Sockets()[0]
	for {
		err := socket.Receive(inbox)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Systems differ in what they report here of datagrams that were sent and found nobody. No more often than that.
			time.Sleep(time.Millisecond)
			continue
		}
		now := time.Now()
		for _, m := range inbox.Messages() {
			for datagram := range m.Datagrams() {
				c.take(m.Peer, datagram, now)
			}
		}
	}
}

// take takes one datagram.
func (c *connector) take(from netip.AddrPort, datagram []byte, now time.Time) {
	c.mu.Lock()
	arrival := c.inlet.Receive(from, datagram, now)
	_, known := c.inlet.Handshake.Peer()
	c.mu.Unlock()
	if known {
		c.found()
	}
	if arrival.Frame != nil {
		select {
		case c.frames <- arrival.Frame:
		default:
			c.tally.Add(bridge.DropBehind)
		}
	}
	if arrival.Chosen {
		replace(c.choices, arrival.Choices)
	}
	if arrival.View != nil {
		replace(c.views, arrival.View)
	}
	if arrival.Pose != nil {
		replace(c.poses, arrival.Pose)
	}
}

// replace leaves something in a channel that holds one thing, in place of what nobody has taken. One goroutine at a time may do so.
func replace[T any](channel chan T, newest T) {
	select {
	case <-channel:
	default:
	}
	channel <- newest
}

// found says, once, that the connector has answered. It belongs to the reading goroutine.
func (c *connector) found() {
	select {
	case <-c.answered:
	default:
		close(c.answered)
	}
}

// step repeats the ready datagram and gives up frames until the context ends.
func (c *connector) step(ctx context.Context) {
	ready, err := vr2gather.Datagram{Type: vr2gather.DatagramReady}.Append(nil)
	if err != nil {
		c.log.Error("no ready datagram", "error", err)
		return
	}
	ticker := time.NewTicker(stepInterval)
	defer ticker.Stop()
	var to []netip.AddrPort
	var told told
	for now := time.Now(); ; {
		c.mu.Lock()
		to = c.inlet.Handshake.Ready(now, to[:0])
		c.inlet.Expire(now)
		c.mu.Unlock()
		for _, address := range to {
			c.send(ready, address)
		}
		c.tell(&told, now)
		select {
		case now = <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// told is what the log has of the connector.
type told struct {
	// silent is whether the connector was silent, and wrong how many wrong secrets had come, of which the log had at refusedAt.
	silent    bool
	wrong     int64
	refusedAt time.Time
}

// refusedInterval is the least time between two log lines about wrong secrets.
const refusedInterval = time.Second

// tell logs when the connector falls silent and when it is back. Wrong secrets are logged as long as there is no connector: later they are among
// the reasons for drops.
func (c *connector) tell(t *told, now time.Time) {
	c.mu.Lock()
	peer, known := c.inlet.Handshake.Peer()
	_, receives := c.inlet.Handshake.Receiver(now)
	c.mu.Unlock()
	silent := known && !receives
	switch {
	case silent && !t.silent:
		c.log.Warn("the connector does not answer, nothing is sent to it", "address", peer)
	case !silent && t.silent:
		c.log.Info("the connector answers again", "address", peer)
	}
	t.silent = silent
	if wrong := c.tally.Count(bridge.DropSecret); !known && wrong > t.wrong && now.Sub(t.refusedAt) >= refusedInterval {
		c.log.Warn("a connector presents another secret than this bridge has, and is not listened to", "datagrams", wrong-t.wrong)
		t.wrong, t.refusedAt = wrong, now
	}
}

// send sends datagrams of vr2gather.DatagramSize bytes, one behind the other: to the system they are one run, which costs it little more than one datagram.
// Those that it does not take are in its own count.
func (c *connector) send(datagrams []byte, to netip.AddrPort) {
	run := [1]udp.Message{{Peer: to, Data: datagrams, Segment: vr2gather.DatagramSize}}
	if err := c.port.Sockets()[0].Send(run[:]); err != nil && !errors.Is(err, net.ErrClosed) {
		c.log.Debug("datagrams not sent", "to", to, "error", err)
	}
}

// unsent is how many datagrams the system did not take.
func (c *connector) unsent() int64 { return int64(c.port.Stats().SendErrors) }

// peer is where the connector is.
func (c *connector) peer() (netip.AddrPort, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inlet.Handshake.Peer()
}

// receiver is the address that media for the connector is sent to, if it is to be sent any by now.
func (c *connector) receiver(now time.Time) (netip.AddrPort, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inlet.Handshake.Receiver(now)
}

// counts are what came from the connector so far.
func (c *connector) counts() bridge.InletCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inlet.Counts()
}
