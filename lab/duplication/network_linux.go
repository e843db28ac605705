package duplication

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/netfn/daemon"
	"github.com/volsfu/volsfu/lab/edgepair"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/test/traffic"
)

// hosts are the two hosts of a network: packets are copied from the first to the second.
var hosts = [2]string{"near", "far"}

// paths is the number of paths between them.
const paths = 3

// inner returns an inner address of a host, given by its place in hosts. An edge copies the packets between inner
// addresses of the same number.
func inner(host, number int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(1 + host), 0, byte(1 + number)})
}

// inner6 is inner for IPv6.
func inner6(host, number int) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfd, 3: byte(1 + host), 15: byte(1 + number)})
}

// routable is a network whose hosts have inner addresses, with routes over the first link.
type routable struct {
	*topology.Network
	links []edgepair.Link
	// next are the addresses of both hosts on the first link, for routes of IPv6.
	next [2]netip.Addr
}

// newEmulated returns a network with parallel links, and its inner addresses. The delays and losses are those of the
// direction from the first host to the second one.
func newEmulated(ctx context.Context, forth topology.Direction, seed uint64) (*routable, error) {
	t := &topology.Topology{Hosts: map[string]topology.Host{hosts[0]: {}, hosts[1]: {}},
		Links: make(map[string]topology.Link), Ethernet: true, IPv6: true, Seed: seed}
	for i := range paths {
		name := fmt.Sprintf("link%d", i)
		t.Links[name] = topology.Link{Forth: forth}
		t.Paths = append(t.Paths, topology.Path{From: hosts[0], To: hosts[1],
			Through: []topology.Passage{{Link: name}}})
	}
	n, err := topology.Start(ctx, t)
	if err != nil {
		return nil, err
	}
	r := &routable{n, edgepair.Parallel(n, hosts, paths), [2]netip.Addr{n.Address6(hosts[0]), n.Address6(hosts[1])}}
	return r.addressed(1)
}

// newWires returns a network whose hosts are joined by veth pairs, and its inner addresses up to a number.
func newWires(ctx context.Context, wires, numbers int) (*routable, error) {
	n, err := topology.Start(ctx, &topology.Topology{
		Hosts: map[string]topology.Host{hosts[0]: {}, hosts[1]: {}}, IPv6: true})
	if err != nil {
		return nil, err
	}
	r := &routable{Network: n}
	for i := range wires {
		if err := r.addWire(i); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	if err := r.awaitWires(ctx); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return r.addressed(numbers)
}

// wireAddress returns the address of a host at a veth pair, in the upper half of the networks of RFC 2544.
func wireAddress(wire, host int) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 19, byte(wire), byte(1 + host)})
}

// wireAddress6 returns the link-local address of a host at every veth pair.
func wireAddress6(host int) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 15: byte(1 + host)})
}

// addWire joins the hosts by a veth pair.
func (r *routable) addWire(number int) error {
	name := fmt.Sprintf("wire%d", number)
	path, err := r.Namespace(hosts[1])
	if err != nil {
		return err
	}
	namespace, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = namespace.Close() }()
	if err := r.Inside(hosts[0], func() error {
		attributes := netlink.NewLinkAttrs()
		attributes.Name = name
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: name,
			PeerNamespace: netlink.NsFd(namespace.Fd())})
	}); err != nil {
		return fmt.Errorf("join the hosts by %s: %w", name, err)
	}
	var l edgepair.Link
	for i, host := range hosts {
		l.Interfaces[i], l.Addresses[i] = name, wireAddress(number, i)
		if err := r.Inside(host, func() error {
			device, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			return errors.Join(netlink.LinkSetUp(device), addAddress(device, netip.PrefixFrom(l.Addresses[i], 24)),
				addAddress(device, netip.PrefixFrom(wireAddress6(i), 64)))
		}); err != nil {
			return fmt.Errorf("addresses of %s on %s: %w", name, host, err)
		}
		r.next[i] = wireAddress6(i)
	}
	r.links = append(r.links, l)
	return nil
}

// addAddress adds an address to a device in the namespace of the calling thread.
func addAddress(device netlink.Link, address netip.Prefix) error {
	return netlink.AddrAdd(device, &netlink.Addr{IPNet: network(address), Flags: unix.IFA_F_NODAD})
}

func network(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// wirePatience is the time limit for veth pairs to carry packets, which the kernel allows in its own thread up to a
// second after both ends are up.
const wirePatience = 5 * time.Second

// awaitWires waits until all veth pairs carry packets.
func (r *routable) awaitWires(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, wirePatience)
	defer cancel()
	for ; ; time.Sleep(time.Millisecond) {
		ready := true
		for _, host := range hosts {
			if err := r.Inside(host, func() error {
				for _, l := range r.links {
					device, err := netlink.LinkByName(l.Interfaces[0])
					if err != nil {
						return err
					}
					// The kernel's thread sets the state when it activates the queue of the device.
					ready = ready && device.Attrs().OperState == netlink.OperUp
				}
				return nil
			}); err != nil {
				return err
			}
		}
		if ready {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the veth pairs carry no packets after %v: %w", wirePatience, ctx.Err())
		}
	}
}

// addressed gives both hosts their inner addresses, on the loopback interface, and routes over the first link. It
// closes the network if that fails.
func (r *routable) addressed(numbers int) (*routable, error) {
	for i, host := range hosts {
		if err := r.Inside(host, func() error { return r.addInner(i, numbers) }); err != nil {
			return nil, errors.Join(fmt.Errorf("inner addresses of %s: %w", host, err), r.Close())
		}
	}
	return r, nil
}

// addInner is addressed for a host, in its namespace.
func (r *routable) addInner(host, numbers int) error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	for number := range numbers {
		for _, a := range []netip.Addr{inner(host, number), inner6(host, number)} {
			if err := addAddress(loopback, netip.PrefixFrom(a, a.BitLen())); err != nil {
				return err
			}
		}
	}
	first, err := netlink.LinkByName(r.links[0].Interfaces[host])
	if err != nil {
		return err
	}
	other := 1 - host
	return errors.Join(
		netlink.RouteAdd(&netlink.Route{LinkIndex: first.Attrs().Index, Dst: network(innerPrefix(other)),
			Gw: r.links[0].Addresses[other].AsSlice(), Src: inner(host, 0).AsSlice()}),
		netlink.RouteAdd(&netlink.Route{LinkIndex: first.Attrs().Index, Dst: network(innerPrefix6(other)),
			Gw: r.next[other].AsSlice(), Src: inner6(host, 0).AsSlice()}))
}

// innerPrefix and innerPrefix6 are the prefixes of all inner addresses of a host.
func innerPrefix(host int) netip.Prefix  { return netip.PrefixFrom(inner(host, 0), 24).Masked() }
func innerPrefix6(host int) netip.Prefix { return netip.PrefixFrom(inner6(host, 0), 64).Masked() }

// rule is the copies of the packets to an inner address, as a configuration has them, and their number.
type rule struct {
	copies string
	paths  int
}

// onAll copies onto every path, and onOne sends on the first path only, with its headers.
var onAll, onOne = rule{"all", paths}, rule{"[path1]", 1}

// startEdges starts an edge on each host, and waits until the rules apply. Rule i is for the inner addresses of number
// i, in both directions.
func (b *bench) startEdges(ctx context.Context, r *routable, rules ...rule) (p *edgepair.Pair, err error) {
	c := edgepair.Config{Links: r.links}
	if c.Volnet, err = b.program(); err != nil {
		return nil, err
	}
	for i, host := range hosts {
		var list []string
		for number, rule := range rules {
			for _, to := range []netip.Addr{inner(1-i, number), inner6(1-i, number)} {
				list = append(list, fmt.Sprintf("{name: rule%d, to: %q, copies: %s}", len(list),
					netip.PrefixFrom(to, to.BitLen()), rule.copies))
			}
		}
		c.Sides[i] = edgepair.Side{Host: host, Text: fmt.Sprintf("send: {rules: [%s]}\nreceive: {inner: [%q, %q]}\n",
			strings.Join(list, ", "), innerPrefix(1-i), innerPrefix6(1-i))}
	}
	if p, err = edgepair.Start(ctx, r.Network, c); err != nil {
		return nil, err
	}
	for _, host := range hosts {
		if err := p.Await(ctx, host, "copies onto all usable paths", func(s *daemon.Status) bool {
			for i := range s.Rules {
				if len(s.Rules[i].Set) != rules[i/2].paths {
					return false
				}
			}
			return true
		}); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	return p, nil
}

// end is a host of a network. It implements traffic.Host.
type end struct {
	network *topology.Network
	host    string
}

// Do implements traffic.Host.
func (e end) Do(f func()) {
	if err := e.network.Inside(e.host, func() error {
		f()
		return nil
	}); err != nil {
		panic("duplication: the network has been closed during a transfer: " + err.Error())
	}
}

// ends returns the inner addresses of a number.
func (r *routable) ends(number int) *traffic.Ends {
	return &traffic.Ends{From: end{r.Network, hosts[0]}, To: end{r.Network, hosts[1]}, Source: inner(0, number),
		Destination: inner(1, number), Source6: inner6(0, number), Destination6: inner6(1, number)}
}
