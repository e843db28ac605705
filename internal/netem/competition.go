package netem

import (
	"fmt"
	"net"
	"net/netip"
	"time"
)

// AddCubic makes count endless transfers by Cubic begin now, which compete with the host's packets for one direction of its access link. Their other ends are
// past the access link, where nothing delays them; acknowledgements take the Config.Delay that the other direction has now, and neither load nor lose anything there. The link
// must have a rate. The error wraps ErrAddress or ErrConfig, or is net.ErrClosed.
func (n *Network) AddCubic(addr netip.Addr, d Direction, count int) error {
	if count < 1 {
		return fmt.Errorf("%w: %d Cubic flows, expected 1 or more", ErrConfig, count)
	}
	return n.change(addr, d, func(h, other *hop, now time.Time) error {
		if h.link.transmitter.unlimited() {
			return fmt.Errorf("%w: rate_bps is 0, expected above 0 because Cubic flows are to compete there", ErrConfig)
		}
		for range count {
			h.flows = append(h.flows, NewCubicFlow(uint64(len(h.flows)+1), other.link.config.Delay, now))
		}
		return nil
	})
}

// StopCubic ends the transfers that AddCubic began there. The error wraps ErrAddress, or is net.ErrClosed.
func (n *Network) StopCubic(addr netip.Addr, d Direction) error {
	return n.change(addr, d, func(h, _ *hop, _ time.Time) error {
		for _, f := range h.flows {
			f.Stop()
		}
		return nil
	})
}

// SetRate makes the rate of one direction of a host's access link that of a trace, which begins now, as Link.SetRate does. The error wraps ErrAddress, ErrTrace or
// ErrConfig, or is net.ErrClosed.
func (n *Network) SetRate(addr netip.Addr, d Direction, trace RateTrace) error {
	return n.change(addr, d, func(h, _ *hop, now time.Time) error { return h.link.SetRate(trace, now) })
}

// CubicStats describes the transfers that AddCubic began there, stopped ones included, in the order in which they began.
func (n *Network) CubicStats(addr netip.Addr, d Direction) []CubicStats {
	n.mu.Lock()
	defer n.mu.Unlock()
	var stats []CubicStats
	if h, _ := n.hosts[addr.Unmap()].hops(d); h != nil {
		for _, f := range h.flows {
			stats = append(stats, f.Stats())
		}
	}
	return stats
}

// QueueDelays returns how long the packets that came through one direction of a host's access link waited there: those of sockets, and those of the transfers
// that AddCubic began.
func (n *Network) QueueDelays(addr netip.Addr, d Direction) (sockets, cubic DelayCounts) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h, _ := n.hosts[addr.Unmap()].hops(d); h != nil {
		sockets, cubic = h.waited, h.waitedCubic
	}
	return sockets, cubic
}

// change does something to one direction of a host's access link.
func (n *Network) change(addr netip.Addr, d Direction, do func(h, other *hop, now time.Time) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return net.ErrClosed
	}
	h, other := n.hosts[addr.Unmap()].hops(d)
	if h == nil {
		return fmt.Errorf("%w: %s of %s, expected a host with an access link", ErrAddress, d, addr)
	}
	now := time.Now()
	n.step(now)
	err := do(h, other, now)
	n.schedule(h)
	n.step(now)
	n.setAlarm(now)
	if err != nil {
		return fmt.Errorf("%s of %s: %w", d, addr, err)
	}
	return nil
}

// hops returns one direction of the access link and the other, nil if there is none.
func (h *host) hops(d Direction) (hop, other *hop) {
	switch {
	case h == nil:
		return nil, nil
	case d == Up:
		return h.up, h.down
	default:
		return h.down, h.up
	}
}

// admits reports why a hop cannot have the given parameters, although they are valid: without a rate, nothing would ever limit a window.
func (h *hop) admits(cfg Config) error {
	if h == nil || cfg.RateBPS > 0 {
		return nil
	}
	for _, f := range h.flows {
		if !f.stopped {
			return fmt.Errorf("%s: %w: rate_bps is 0, expected above 0 because Cubic flows compete there", h.direction, ErrConfig)
		}
	}
	return nil
}
