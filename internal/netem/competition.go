package netem

import (
	"fmt"
	"net"
	"net/netip"
	"time"
)

// AddCubic starts count endless Cubic transfers that compete with the host's packets for one direction of its access
// link. Their other ends are directly behind the access link, without further delay. Acknowledgements take the current
// Config.Delay of the other direction, without load or loss. The link must have a rate. The error wraps ErrAddress or
// ErrConfig, or is net.ErrClosed.
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

// StopCubic stops the transfers started by AddCubic there. The error wraps ErrAddress, or is net.ErrClosed.
func (n *Network) StopCubic(addr netip.Addr, d Direction) error {
	return n.change(addr, d, func(h, _ *hop, _ time.Time) error {
		for _, f := range h.flows {
			f.Stop()
		}
		return nil
	})
}

// SetRate makes one direction of a host's access link follow a rate trace, starting now, as Link.SetRate does. The
// error wraps ErrAddress, ErrTrace or ErrConfig, or is net.ErrClosed.
func (n *Network) SetRate(addr netip.Addr, d Direction, trace RateTrace) error {
	return n.change(addr, d, func(h, _ *hop, now time.Time) error { return h.link.SetRate(trace, now) })
}

// CubicStats returns the statistics of the transfers started by AddCubic there, including stopped ones, in the order of
// their start.
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

// QueueDelays returns the queueing delays of the packets through one direction of a host's access link: packets of
// sockets, and of transfers started by AddCubic.
func (n *Network) QueueDelays(addr netip.Addr, d Direction) (sockets, cubic DelayCounts) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h, _ := n.hosts[addr.Unmap()].hops(d); h != nil {
		sockets, cubic = h.waited, h.waitedCubic
	}
	return sockets, cubic
}

// change calls do for one direction of a host's access link.
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

// admits reports why a hop cannot have the given valid parameters: without a rate, a window of Cubic would never be
// limited.
func (h *hop) admits(cfg Config) error {
	if h == nil || cfg.RateBPS > 0 {
		return nil
	}
	for _, f := range h.flows {
		if !f.stopped {
			return fmt.Errorf("%s: %w: rate_bps is 0, expected above 0 because Cubic flows compete there",
				h.direction, ErrConfig)
		}
	}
	return nil
}
