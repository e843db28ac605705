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
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// connector is the bridge's end of the datagrams between it and the connector. One goroutine reads; sending is safe for concurrent use.
type connector struct {
	conn  *net.UDPConn
	tally *bridge.Tally
	log   *slog.Logger
	// frames and choices bring what the connector sends. Of choices only the newest is kept.
	frames  chan<- *bridge.Frame
	choices chan string
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
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(b.local))
	if err != nil {
		return nil, fmt.Errorf("listen for the connector: %w", err)
	}
	if err := conn.SetReadBuffer(receiveBuffer); err != nil {
		log.Warn("receive buffer of the connector's socket stays as it is", "error", err)
	}
	home := b.local.Addr()
	if home.IsUnspecified() {
		home = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return &connector{
		conn: conn, tally: tally, log: log, frames: frames, choices: make(chan string, 1), answered: make(chan struct{}),
		inlet: bridge.NewInlet(netip.AddrPortFrom(home, b.local.Port()+1), b.layout, b.input, tally),
	}, nil
}

// read takes datagrams until the socket is closed.
func (c *connector) read() {
	datagram := make([]byte, vr2gather.MaxDatagram+1)
	for {
		n, from, err := c.conn.ReadFromUDPAddrPort(datagram)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil && n == 0 {
			// Some systems report here that a datagram sent before found nobody: the connector does not listen yet, or any more. No more often than that.
			time.Sleep(time.Millisecond)
			continue
		}
		now := time.Now()
		c.mu.Lock()
		arrival := c.inlet.Receive(netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), datagram[:n], now)
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
			select {
			case <-c.choices:
			default:
			}
			c.choices <- arrival.Choices
		}
	}
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
	for now := time.Now(); ; {
		c.mu.Lock()
		to = c.inlet.Handshake.Ready(now, to[:0])
		c.inlet.Expire(now)
		c.mu.Unlock()
		for _, address := range to {
			c.send(ready, address)
		}
		select {
		case now = <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// send sends one datagram.
func (c *connector) send(datagram []byte, to netip.AddrPort) {
	if _, err := c.conn.WriteToUDPAddrPort(datagram, to); err != nil && !errors.Is(err, net.ErrClosed) {
		c.tally.Add(bridge.DropSocket)
		c.log.Debug("datagram not sent", "to", to, "error", err)
	}
}

// peer is where the connector is.
func (c *connector) peer() (netip.AddrPort, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inlet.Handshake.Peer()
}

// counts are what came from the connector so far.
func (c *connector) counts() bridge.InletCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inlet.Counts()
}
