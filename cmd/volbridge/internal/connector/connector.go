// Package connector is the bridge's end of the datagram connection to VR2Gather's native connector: the socket, the
// handshake and the input from the connector.
//
// One goroutine runs Read, another one Step. The other methods are safe for concurrent use.
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

// Connector is the bridge's end of the datagram connection to the native connector. One goroutine reads; sending is
// safe for concurrent use.
type Connector struct {
	port  *udp.Port
	tally *bridge.Tally
	log   *slog.Logger
	// frames, choices, views and poses carry the connector's input. Except for frames, only the newest item is kept.
	frames  chan<- *bridge.Frame
	choices chan string
	views   chan *signal.Viewpoint
	poses   chan *signal.Pose
	// answered is closed when the connector has answered.
	answered chan struct{}

	mu    sync.Mutex
	inlet *bridge.Inlet
}

// receiveBuffer is the requested size of the receive buffer, for bursts that arrive while this process is not
// scheduled: 27 tile frames of 100 kB. Systems grant less if they have a limit.
const receiveBuffer = 8 << 20

// stepInterval is the interval of checking for due ready datagrams and expired frames.
const stepInterval = 20 * time.Millisecond

// Config has the addresses and the layout of a connector.
type Config struct {
	// Address is the address on which the bridge listens. The connector is expected on the next port.
	Address netip.AddrPort
	Layout  bridge.Layout
	// Input is set if the connector's media is wanted.
	Input bool
	// Secret is the secret that the connector must present; nil for none.
	Secret *bridge.Secret
	// Frames receives the connector's frames. A frame is dropped if the channel is full.
	Frames chan<- *bridge.Frame
	Tally  *bridge.Tally
	Log    *slog.Logger
}

// Open opens the socket for the connector.
func Open(c Config) (*Connector, error) {
	port, err := udp.Listen(udp.Config{Address: c.Address, ReceiveBuffer: receiveBuffer})
	if err != nil {
		return nil, fmt.Errorf("listen for the connector: %w", err)
	}
	expected := c.Address.Addr()
	if expected.IsUnspecified() {
		expected = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	connector := &Connector{
		port: port, tally: c.Tally, log: c.Log, frames: c.Frames, answered: make(chan struct{}),
		choices: make(chan string, 1), views: make(chan *signal.Viewpoint, 1), poses: make(chan *signal.Pose, 1),
		inlet: bridge.NewInlet(netip.AddrPortFrom(expected, c.Address.Port()+1), c.Layout, c.Input, c.Tally),
	}
	if c.Secret != nil {
		connector.inlet.Handshake.Require(c.Secret)
	}
	return connector, nil
}

// Close closes the socket, which ends Read.
func (c *Connector) Close() error { return c.port.Close() }

// Address returns the address on which the bridge listens.
func (c *Connector) Address() netip.AddrPort { return c.port.Address() }

// Answered returns a channel that is closed when the connector has answered.
func (c *Connector) Answered() <-chan struct{} { return c.answered }

// Choices returns the channel of quality messages. A message that was not received is replaced by the next one.
func (c *Connector) Choices() <-chan string { return c.choices }

// Views returns the channel of viewpoints, which holds the newest one.
func (c *Connector) Views() <-chan *signal.Viewpoint { return c.views }

// Poses returns the channel of poses of the connector's object, which holds the newest one.
func (c *Connector) Poses() <-chan *signal.Pose { return c.poses }

// Read reads datagrams until the socket is closed.
func (c *Connector) Read() {
	inbox := udp.NewInbox()
	socket := c.port.Sockets()[0]
	for {
		err := socket.Receive(inbox)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Some systems report here that an earlier datagram did not reach its destination. The pause bounds the
			// rate of such errors.
			time.Sleep(time.Millisecond)
			continue
		}
		now := time.Now()
		for _, m := range inbox.Messages() {
			for datagram := range m.Datagrams() {
				c.handle(m.Peer, datagram, now)
			}
		}
	}
}

// handle handles one datagram.
func (c *Connector) handle(from netip.AddrPort, datagram []byte, now time.Time) {
	c.mu.Lock()
	arrival := c.inlet.Receive(from, datagram, now)
	_, known := c.inlet.Handshake.Peer()
	c.mu.Unlock()
	if known {
		c.markAnswered()
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

// replace stores an item in a channel of capacity one, in place of an item that was not received. Only one goroutine
// may call it for a channel.
func replace[T any](channel chan T, newest T) {
	select {
	case <-channel:
	default:
	}
	channel <- newest
}

// markAnswered closes answered, once. Only the reading goroutine calls markAnswered.
func (c *Connector) markAnswered() {
	select {
	case <-c.answered:
	default:
		close(c.answered)
	}
}

// Step sends ready datagrams and drops expired frames until the context ends.
func (c *Connector) Step(ctx context.Context) {
	ready, err := vr2gather.Datagram{Type: vr2gather.DatagramReady}.Append(nil)
	if err != nil {
		c.log.Error("no ready datagram", "error", err)
		return
	}
	ticker := time.NewTicker(stepInterval)
	defer ticker.Stop()
	var to []netip.AddrPort
	var last logged
	for now := time.Now(); ; {
		c.mu.Lock()
		to = c.inlet.Handshake.Ready(now, to[:0])
		c.inlet.Expire(now)
		c.mu.Unlock()
		for _, address := range to {
			c.Send(ready, address)
		}
		c.logChanges(&last, now)
		select {
		case now = <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// logged is the state of the connector that was logged last.
type logged struct {
	// silent is set if the connector was silent. wrong is the number of wrong secrets that were logged, at refusedAt.
	silent    bool
	wrong     int64
	refusedAt time.Time
}

// refusedInterval is the shortest time between two log lines about wrong secrets.
const refusedInterval = time.Second

// logChanges logs when the connector becomes silent and when it returns. Wrong secrets are logged until there is a
// connector; later they are counted in the drops.
func (c *Connector) logChanges(last *logged, now time.Time) {
	c.mu.Lock()
	peer, known := c.inlet.Handshake.Peer()
	_, receives := c.inlet.Handshake.Receiver(now)
	c.mu.Unlock()
	silent := known && !receives
	switch {
	case silent && !last.silent:
		c.log.Warn("the connector does not answer; sending to it is suspended", "address", peer)
	case !silent && last.silent:
		c.log.Info("the connector answers again", "address", peer)
	}
	last.silent = silent
	wrong := c.tally.Count(bridge.DropSecret)
	if !known && wrong > last.wrong && now.Sub(last.refusedAt) >= refusedInterval {
		c.log.Warn("a connector presented a wrong secret and is ignored", "datagrams",
			wrong-last.wrong)
		last.wrong, last.refusedAt = wrong, now
	}
}

// Send sends datagrams of vr2gather.DatagramSize bytes in one system call with segmentation offload, which costs little
// more than one datagram. Datagrams that the system refuses are counted by the socket.
func (c *Connector) Send(datagrams []byte, to netip.AddrPort) {
	run := [1]udp.Message{{Peer: to, Data: datagrams, Segment: vr2gather.DatagramSize}}
	if err := c.port.Sockets()[0].Send(run[:]); err != nil && !errors.Is(err, net.ErrClosed) {
		c.log.Debug("datagrams not sent", "to", to, "error", err)
	}
}

// Unsent returns the number of datagrams that the system refused.
func (c *Connector) Unsent() int64 { return int64(c.port.Stats().SendErrors) }

// Peer returns the address of the connector.
func (c *Connector) Peer() (netip.AddrPort, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inlet.Handshake.Peer()
}

// Receiver returns the address to which media for the connector is sent, if the connector is not silent.
func (c *Connector) Receiver(now time.Time) (netip.AddrPort, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inlet.Handshake.Receiver(now)
}

// Counts returns the counters of the connector's input.
func (c *Connector) Counts() bridge.InletCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inlet.Counts()
}
