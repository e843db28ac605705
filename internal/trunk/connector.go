package trunk

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/internal/transport/ratelimit"
	"github.com/volsfu/volsfu/internal/udp"
)

const (
	// minRedial and maxRedial bound the time between two attempts to dial. The time doubles with each attempt.
	minRedial = 100 * time.Millisecond
	maxRedial = 2 * time.Second
	// reopenInterval is the interval of attempts to open the port again after a failure.
	reopenInterval = time.Second
)

// refusalRate limits the events Refused.
var refusalRate = ratelimit.Rate{PerSecond: 1, Burst: 10}

// connector opens lanes: it accepts those of nodes with a smaller name, and dials nodes with a greater name. The caller
// of the Host owns the connector.
type connector struct {
	*services
	context context.Context
	cancel  context.CancelFunc
	// port accepts lanes. It is nil after a failure until the port is open again.
	port     *transport.LanePort
	address  netip.AddrPort
	reopened time.Time
	peers    map[string]*peer
	refusals ratelimit.Bucket
	// refused counts handshakes that failed, omitted those since the last event. ignored counts the datagrams that were
	// ignored by former ports.
	refused, omitted, ignored uint64
	wrongCertificate          atomic.Uint64
}

// peer is a node to which a trunk is wanted.
type peer struct {
	address netip.AddrPort
	// context ends when the trunk is not wanted.
	context context.Context
	cancel  context.CancelFunc
	// attempt ends the handshake of a lane that is being opened. It is nil while there is none. redial is the time of
	// the next attempt, backoff the time between two.
	attempt context.CancelFunc
	redial  time.Time
	backoff time.Duration
}

// attempt is a handshake: of a dialed lane with its peer, or of an accepted lane without.
type attempt struct {
	lane *transport.Lane
	peer *peer
	node string
	// context ends if the lane is not wanted.
	context context.Context
}

// Reports of the connector's goroutines.
type (
	// opened reports a lane to the node of the attempt.
	opened struct{ attempt }
	// refused reports a handshake that failed.
	refused struct {
		attempt
		reason string
	}
	// portFailed reports that a port cannot receive.
	portFailed struct {
		port *transport.LanePort
		err  error
	}
)

// listen opens the port for trunks.
func listen(s *services) (*connector, error) {
	c := &connector{services: s, peers: map[string]*peer{}, refusals: refusalRate.Bucket()}
	c.context, c.cancel = context.WithCancel(context.Background())
	if err := c.open(s.cfg.Address); err != nil {
		c.cancel()
		return nil, fmt.Errorf("listen for trunks: %w", err)
	}
	c.address = c.port.Address()
	return c, nil
}

// open opens the port that accepts lanes, and starts its goroutines.
func (c *connector) open(address netip.AddrPort) error {
	port, err := c.newPort(address, true)
	if err != nil {
		return err
	}
	c.port = port
	c.start(func() {
		for lane := range port.Accepted() {
			c.handshake(attempt{lane: lane, context: c.context})
		}
	}, func() { c.report(portFailed{port, errors.New("a panic in the goroutine that accepts lanes")}) })
	c.start(func() {
		if err, failed := <-port.Failed(); failed {
			c.report(portFailed{port, err})
		}
	}, func() {})
	return nil
}

// newPort makes a port. A port that accepts has a socket for each core.
func (c *connector) newPort(address netip.AddrPort, accepts bool) (*transport.LanePort, error) {
	config := transport.LaneConfig{Certificate: c.cfg.Certificate, Verify: c.verify, Accepts: accepts}
	if c.cfg.Open != nil {
		conn, err := c.cfg.Open(address)
		if err != nil {
			return nil, err
		}
		port, err := udp.Attach(conn)
		if err != nil {
			return nil, err
		}
		return transport.NewLanePort(port, config), nil
	}
	sockets := 1
	if accepts {
		sockets = runtime.GOMAXPROCS(0)
	}
	port, err := udp.Listen(udp.Config{
		Address: address, Sockets: sockets, ReceiveBuffer: receiveBuffer, SendBuffer: sendBuffer,
		Patience: sendPatience,
	})
	if err != nil {
		return nil, err
	}
	return transport.NewLanePort(port, config), nil
}

// verify counts certificates that are not those of the cluster.
func (c *connector) verify(raw [][]byte) (string, error) {
	node, err := c.cfg.Verify(raw)
	if err != nil {
		c.wrongCertificate.Add(1)
	}
	return node, err
}

// wait sets the time of the next attempt.
func (p *peer) wait(now time.Time) {
	p.redial = now.Add(p.backoff)
	p.backoff = min(2*p.backoff, maxRedial)
}

// end ends an attempt.
func (p *peer) end() {
	p.attempt()
	p.attempt = nil
}

// connect makes the connector dial a node, if the node has the greater name.
func (c *connector) connect(node string, to netip.AddrPort) {
	if p := c.peers[node]; p != nil {
		if p.address != to {
			p.address, p.redial, p.backoff = to, time.Time{}, minRedial
		}
		return
	}
	p := &peer{address: to, backoff: minRedial}
	p.context, p.cancel = context.WithCancel(c.context)
	c.peers[node] = p
}

// disconnect ends the attempts to dial a node.
func (c *connector) disconnect(node string) {
	if p := c.peers[node]; p != nil {
		p.cancel()
		delete(c.peers, node)
	}
}

// dial begins to open the lanes that are missing. missing returns the number of the next lane to a node, -1 if none is
// missing.
func (c *connector) dial(now time.Time, missing func(node string) int) (events []Event) {
	for node, p := range c.peers {
		if node < c.cfg.Node || p.attempt != nil || now.Before(p.redial) {
			continue
		}
		number := missing(node)
		if number < 0 {
			continue
		}
		p.wait(now)
		port, err := c.newPort(netip.AddrPortFrom(c.cfg.Address.Addr(), 0), false)
		if err != nil {
			events = append(events, c.refuse(now, p.address, err.Error())...)
			continue
		}
		lane, err := port.Dial(p.address, number)
		if err != nil {
			_ = port.Close()
			continue
		}
		ctx, cancel := context.WithCancel(p.context)
		p.attempt = cancel
		c.running.Go(func() {
			// The port belongs to the lane.
			<-lane.Done()
			_ = port.Close()
		})
		c.handshake(attempt{lane, p, node, ctx})
	}
	return events
}

// handshake opens a lane in a goroutine of its own, and reports the result.
func (c *connector) handshake(a attempt) {
	c.start(func() {
		node, err := a.lane.Handshake(a.context)
		switch {
		case err != nil:
		case a.peer != nil && node != a.node:
			err = fmt.Errorf("the certificate is that of node %s, expected node %s", node, a.node)
		case node == c.cfg.Node:
			err = errors.New("the certificate is that of this node")
		case a.peer == nil && node > c.cfg.Node:
			err = fmt.Errorf("node %s has dialed, but node %s has the smaller name", node, c.cfg.Node)
		}
		if err != nil {
			a.lane.Close()
			c.report(refused{a, err.Error()})
			return
		}
		a.node = node
		c.report(opened{a})
		if c.context.Err() != nil {
			// close may have emptied the inbox before the report.
			a.lane.Close()
		}
	}, func() {
		a.lane.Close()
		c.report(refused{a, "a panic in the handshake"})
	})
}

// accepts ends an attempt that has succeeded, and reports whether its lane is wanted.
func (c *connector) accepts(a attempt) bool {
	if a.peer == nil {
		return true
	}
	wanted := a.context.Err() == nil
	a.peer.end()
	if a.lane.Number() > 0 {
		a.peer.redial, a.peer.backoff = time.Time{}, minRedial
	}
	return wanted && c.peers[a.node] == a.peer
}

// abandon ends the attempt to open a lane to a node.
func (c *connector) abandon(node string) {
	if p := c.peers[node]; p != nil && p.attempt != nil {
		p.attempt()
	}
}

// failed ends an attempt that has failed.
func (c *connector) failed(r refused, now time.Time) []Event {
	if r.peer != nil {
		wanted := r.context.Err() == nil
		r.peer.end()
		if !wanted {
			return nil
		}
	}
	return c.refuse(now, r.lane.Remote(), r.reason)
}

// refuse counts a refusal, and returns an event within refusalRate.
func (c *connector) refuse(now time.Time, address netip.AddrPort, reason string) []Event {
	c.refused++
	if !c.refusals.Take(now) {
		c.omitted++
		return nil
	}
	e := Refused{address, reason, c.omitted}
	c.omitted = 0
	return []Event{e}
}

// lasted records that the trunk to a node has lasted for maxRedial. The next attempt follows its end at once. After a
// trunk that ends sooner, for example because of an invalid message, the attempts become rarer.
func (c *connector) lasted(node string) {
	if p := c.peers[node]; p != nil {
		p.redial, p.backoff = time.Time{}, minRedial
	}
}

// portFailed closes the port if it has failed. reopen opens the port again.
func (c *connector) portFailed(r portFailed) []Event {
	if r.port != c.port {
		return nil
	}
	c.ignored += c.port.Ignored()
	_ = c.port.Close()
	c.port = nil
	return []Event{PortFailed{r.err}}
}

// reopen opens a port that has failed.
func (c *connector) reopen(now time.Time) []Event {
	if c.port != nil || now.Sub(c.reopened) < reopenInterval {
		return nil
	}
	c.reopened = now
	if err := c.open(c.address); err != nil {
		return []Event{PortFailed{err}}
	}
	return nil
}

// datagramsIgnored returns the number of datagrams that opened no lane.
func (c *connector) datagramsIgnored() uint64 {
	if c.port == nil {
		return c.ignored
	}
	return c.ignored + c.port.Ignored()
}

// close ends all handshakes and the port.
func (c *connector) close() {
	c.cancel()
	if c.port != nil {
		_ = c.port.Close()
	}
}
