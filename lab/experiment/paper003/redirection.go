package paper003

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/topology"
)

const (
	// probeInterval is the time between two round-trip measurements of a path.
	probeInterval = 100 * time.Millisecond
	// decisionInterval is the time between two choices of a path, each by the round trips since the last one. The paper
	// states that redirection takes several seconds in a large network; one second is the favourable case of a small
	// one.
	decisionInterval = time.Second
)

// redirection is the method that moves all packets to the best path.
func redirection(_ context.Context, n *topology.Network, _ *trial, _ *experiment.Settings) (*method, error) {
	return &method{control: func(ctx context.Context, _ time.Time) error { return redirect(ctx, n) }}, nil
}

// redirect measures the round trip of each path and routes the packets of both hosts over the path with the shortest
// one, until the context ends.
func redirect(ctx context.Context, n *topology.Network) error {
	var probes []*prober
	defer func() {
		for _, p := range probes {
			p.close()
		}
	}()
	for i := range tableOne {
		p, err := newProber(n, i)
		if err != nil {
			return err
		}
		probes = append(probes, p)
	}
	current := 0
	decision, tick := time.NewTicker(decisionInterval), time.NewTicker(probeInterval)
	defer decision.Stop()
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			for _, p := range probes {
				if err := p.send(); err != nil {
					return err
				}
			}
		case <-decision.C:
			if best := shortest(probes, current); best != current {
				current = best
				if err := route(n, current); err != nil {
					return err
				}
			}
		}
	}
}

// shortest returns the path with the shortest mean round trip since the last call, or the current path if no probe was
// answered.
func shortest(probes []*prober, current int) int {
	best, least := current, time.Duration(0)
	for i, p := range probes {
		if mean, ok := p.mean(); ok && (least == 0 || mean < least) {
			best, least = i, mean
		}
	}
	return best
}

// route routes the packets between the main addresses of both hosts over a path.
func route(n *topology.Network, path int) error {
	for _, ends := range [][2]string{{HostServer, HostViewer}, {HostViewer, HostServer}} {
		from, to := ends[0], ends[1]
		if err := n.Inside(from, func() error {
			link, err := netlink.LinkByName(topology.InterfaceName(path))
			if err != nil {
				return err
			}
			destination := &net.IPNet{IP: n.Address(to).AsSlice(), Mask: net.CIDRMask(32, 32)}
			return netlink.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: destination,
				Gw: n.AddressOn(to, path).AsSlice(), Src: n.Address(from).AsSlice()})
		}); err != nil {
			return fmt.Errorf("route %s over path %d: %w", from, path+1, err)
		}
	}
	return nil
}

// prober measures the round trip of a path by small packets.
type prober struct {
	near, far *net.UDPConn
	trips     chan time.Duration
}

// newProber opens the sockets on a path's own addresses.
func newProber(n *topology.Network, path int) (p *prober, err error) {
	p = &prober{trips: make(chan time.Duration, int(decisionInterval/probeInterval)*4)}
	listen := func(host string) (conn *net.UDPConn, err error) {
		err = n.Inside(host, func() (err error) {
			conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(n.AddressOn(host, path), 0)))
			return err
		})
		return conn, err
	}
	if p.near, err = listen(HostServer); err != nil {
		return nil, err
	}
	if p.far, err = listen(HostViewer); err != nil {
		_ = p.near.Close()
		return nil, err
	}
	go p.echo()
	go p.receive()
	return p, nil
}

// send sends a probe with the time of sending.
func (p *prober) send() error {
	probe := binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano()))
	_, err := p.near.WriteTo(probe, p.far.LocalAddr())
	return err
}

// echo returns probes until the socket is closed.
func (p *prober) echo() {
	buffer := make([]byte, 64)
	for {
		count, from, err := p.far.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			_, _ = p.far.WriteToUDPAddrPort(buffer[:count], from)
		}
	}
}

// receive records round trips until the socket is closed.
func (p *prober) receive() {
	buffer := make([]byte, 64)
	for {
		count, err := p.near.Read(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || count != 8 {
			continue
		}
		select {
		case p.trips <- time.Since(time.Unix(0, int64(binary.BigEndian.Uint64(buffer)))):
		default: // the decision is late; newer probes follow
		}
	}
}

// mean returns the mean of the round trips since the last call.
func (p *prober) mean() (mean time.Duration, ok bool) {
	total, count := time.Duration(0), 0
	for {
		select {
		case trip := <-p.trips:
			total += trip
			count++
		default:
			return total / time.Duration(max(count, 1)), count > 0
		}
	}
}

// close ends the goroutines.
func (p *prober) close() { _, _ = p.near.Close(), p.far.Close() }
