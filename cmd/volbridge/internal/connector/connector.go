// Package connector is the bridge's end of the datagrams between it and VR2Gather's native connector: the socket, the
// handshake, and what the connector sends.
//
// One goroutine runs Read, another Step. The other methods are safe for concurrent use.
package connector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/bridge"
	"github.com/volsfu/volsfu/internal/udp"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// Connector is the bridge's end of the datagrams between it and the connector. One goroutine reads; sending is safe for
// concurrent use.
type Connector struct {
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

// receiveBuffer is asked for, for bursts of frames that come while this process does not run: 27 tile frames of 100 kB.
// Systems give less where they have a limit.
const receiveBuffer = 8 << 20

// stepInterval is how often it is looked whether a ready datagram is due, or a frame past its time.
const stepInterval = 20 * time.Millisecond

// Config says where the bridge listens, and what the connector sends.
type Config struct {
	// Address is where the bridge listens. The connector is expected on the next port.
	Address netip.AddrPort
	Layout  bridge.Layout
	// Input says that the connector's media is taken.
	Input bool
	// Secret is what the connector has to present; nil if there is none.
	Secret *bridge.Secret
	// Frames takes the connector's frames. A frame that does not fit is dropped.
	Frames chan<- *bridge.Frame
	Tally  *bridge.Tally
	Log    *slog.Logger
}

// Open listens for the connector.
func Open(c Config) (*Connector, error) {
	port, err := udp.Listen(udp.Config{Address: c.Address, ReceiveBuffer: receiveBuffer})
	if err != nil {
		return nil, fmt.Errorf("listen for the connector: %w", err)
	}
	home := c.Address.Addr()
	if home.IsUnspecified() {
		home = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	connector := &Connector{
		port: port, tally: c.Tally, log: c.Log, frames: c.Frames, answered: make(chan struct{}),
		choices: make(chan string, 1), views: make(chan *signal.Viewpoint, 1), poses: make(chan *signal.Pose, 1),
		inlet: bridge.NewInlet(netip.AddrPortFrom(home, c.Address.Port()+1), c.Layout, c.Input, c.Tally),
	}
	if c.Secret != nil {
		connector.inlet.Handshake.Require(c.Secret)
	}
	return connector, nil
}

// Close closes the socket, which ends Read.
func (c *Connector) Close() error { return c.port.Close() }

// Address is where the bridge listens.
func (c *Connector) Address() netip.AddrPort { return c.port.Address() }

// Answered is closed when the connector has answered.
func (c *Connector) Answered() <-chan struct{} { return c.answered }

// Choices brings the newest quality message of the connector. A message that was not taken is replaced.
func (c *Connector) Choices() <-chan string { return c.choices }

// Views brings the newest viewpoint of the connector.
func (c *Connector) Views() <-chan *signal.Viewpoint { return c.views }

// Poses brings the newest pose of the connector's object.
func (c *Connector) Poses() <-chan *signal.Pose { return c.poses }

// Read takes datagrams until the socket is closed.
func (c *Connector) Read() {
	inbox := udp.NewInbox()
	socket := c.port.Sockets()[0]
	for {
		err := socket.Receive(inbox)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Systems differ in what they report here of datagrams that were sent and found nobody. No more often than
			// that.
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
func (c *Connector) take(from netip.AddrPort, datagram []byte, now time.Time) {
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

// replace leaves something in a channel that holds one thing, in place of what nobody has taken. One goroutine at a
// time may do so.
func replace[T any](channel chan T, newest T) {
	select {
	case <-channel:
	default:
	}
	channel <- newest
}

// found says, once, that the connector has answered. It belongs to the reading goroutine.
func (c *Connector) found() {
	select {
	case <-c.answered:
	default:
		close(c.answered)
	}
}

// Step repeats the ready datagram and gives up frames until the context ends.
func (c *Connector) Step(ctx context.Context) {
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
			c.Send(ready, address)
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
	// silent is whether the connector was silent, and wrong how many wrong secrets had come, of which the log had at
	// refusedAt.
	silent    bool
	wrong     int64
	refusedAt time.Time
}

// refusedInterval is the least time between two log lines about wrong secrets.
const refusedInterval = time.Second

// tell logs when the connector falls silent and when it is back. Wrong secrets are logged as long as there is no
// connector: later they are among the reasons for drops.
func (c *Connector) tell(t *told, now time.Time) {
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
		c.log.Warn("a connector presents another secret than this bridge has, and is not listened to", "datagrams",
			wrong-t.wrong)
		t.wrong, t.refusedAt = wrong, now
	}
}

// Send sends datagrams of vr2gather.DatagramSize bytes, one behind the other: to the system they are one run, which
// costs it little more than one datagram. Those that it does not take are in its own count.
func (c *Connector) Send(datagrams []byte, to netip.AddrPort) {
	run := [1]udp.Message{{Peer: to, Data: datagrams, Segment: vr2gather.DatagramSize}}
	if err := c.port.Sockets()[0].Send(run[:]); err != nil && !errors.Is(err, net.ErrClosed) {
		c.log.Debug("datagrams not sent", "to", to, "error", err)
	}
}

// Unsent is how many datagrams the system did not take.
func (c *Connector) Unsent() int64 { return int64(c.port.Stats().SendErrors) }

// Peer is where the connector is.
func (c *Connector) Peer() (netip.AddrPort, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inlet.Handshake.Peer()
}

// Receiver is the address that media for the connector is sent to, if it is to be sent any by now.
func (c *Connector) Receiver(now time.Time) (netip.AddrPort, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inlet.Handshake.Receiver(now)
}

// Counts are what came from the connector so far.
func (c *Connector) Counts() bridge.InletCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inlet.Counts()
}
