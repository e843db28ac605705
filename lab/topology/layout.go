package topology

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/volsfu/volsfu/internal/netem/router"
)

// layout holds the addresses, interfaces and wires of a topology.
type layout struct {
	hosts     map[string]int    // index in the plan, in the order of names
	wires     map[string][2]int // of a link, by Way
	parallels []int             // of each host, how many addresses it has
	plan      router.Plan
}

// firstNetwork is the first of the networks of RFC 2544, which are reserved for measurements: one /24 for each number
// of parallel paths.
var firstNetwork = netip.AddrFrom4([4]byte{198, 18, 0, 0})

// addressOf returns the address of the host with the given index on its parallel paths of the given number.
func addressOf(host, parallel int) netip.Addr {
	bytes := firstNetwork.As4()
	bytes[2], bytes[3] = byte(parallel), byte(host+1)
	return netip.AddrFrom4(bytes)
}

// firstNetwork6 is the network of RFC 5180, which is reserved for measurements with IPv6: one /64 for each number of
// parallel paths.
var firstNetwork6 = netip.MustParseAddr("2001:2::")

// address6Of is addressOf for IPv6.
func address6Of(host, parallel int) netip.Addr {
	bytes := firstNetwork6.As16()
	bytes[7], bytes[15] = byte(parallel), byte(host+1)
	return netip.AddrFrom16(bytes)
}

// InterfaceName returns the name of the interface of a host on its parallel paths of the given number: see AddressOn.
func InterfaceName(parallel int) string { return fmt.Sprintf("path%d", parallel) }

// newLayout returns the layout of a valid topology.
func newLayout(t *Topology) *layout {
	l := &layout{hosts: make(map[string]int), wires: make(map[string][2]int), parallels: make([]int, len(t.Hosts))}
	for i, name := range sortedKeys(t.Hosts) {
		l.hosts[name] = i
		l.parallels[i] = 1
	}
	l.plan.Seed, l.plan.Ethernet = t.Seed, t.Ethernet
	for _, name := range sortedKeys(t.Links) {
		link := t.Links[name]
		l.wires[name] = [2]int{l.addWire(name, Forth, &link.Forth), l.addWire(name, Back, &link.Back)}
	}
	parallels := make(map[[2]int]int)
	for _, p := range t.Paths {
		l.addPath(&p, parallels, t.IPv6)
	}
	for i, name := range sortedKeys(t.Hosts) {
		namespace := router.Namespace{Name: name, Sysctls: t.Hosts[name].Sysctls}
		for parallel := range l.parallels[i] {
			at := router.Interface{Name: InterfaceName(parallel),
				Address: netip.PrefixFrom(addressOf(i, parallel), 24)}
			if t.IPv6 {
				at.Address6 = netip.PrefixFrom(address6Of(i, parallel), 64)
			}
			namespace.Interfaces = append(namespace.Interfaces, at)
		}
		l.plan.Namespaces = append(l.plan.Namespaces, namespace)
	}
	return l
}

// addWire adds one direction of a link and returns its index.
func (l *layout) addWire(link string, way Way, d *Direction) int {
	w := router.Wire{Name: link + "/" + way.String(), Config: d.Config, Trace: d.Trace, Repeat: d.Repeat}
	for _, c := range d.Schedule {
		w.Schedule = append(w.Schedule, router.Change{At: c.At, Config: c.Config})
	}
	l.plan.Wires = append(l.plan.Wires, w)
	return len(l.plan.Wires) - 1
}

// addPath adds the routes of both directions of a path.
func (l *layout) addPath(p *Path, parallels map[[2]int]int, ipv6 bool) {
	from, to := l.hosts[p.From], l.hosts[p.To]
	pair := [2]int{min(from, to), max(from, to)}
	parallel := parallels[pair]
	parallels[pair]++
	l.parallels[from], l.parallels[to] = max(l.parallels[from], parallel+1), max(l.parallels[to], parallel+1)
	forth := router.Route{From: addressOf(from, parallel), To: addressOf(to, parallel)}
	back := router.Route{From: forth.To, To: forth.From}
	for _, passage := range p.Through {
		first, second := Forth, Back
		if passage.Reversed {
			first, second = Back, Forth
		}
		forth.Wires = append(forth.Wires, l.wires[passage.Link][first])
		back.Wires = append(back.Wires, l.wires[passage.Link][second])
	}
	slices.Reverse(back.Wires)
	l.plan.Routes = append(l.plan.Routes, forth, back)
	if ipv6 {
		forth.From, forth.To = address6Of(from, parallel), address6Of(to, parallel)
		back.From, back.To = forth.To, forth.From
		l.plan.Routes = append(l.plan.Routes, forth, back)
	}
}

// address returns the address of a host on its parallel paths of a number. The address is invalid if it does not exist.
func (l *layout) address(host string, parallel int) netip.Addr {
	i, ok := l.hosts[host]
	if !ok || parallel < 0 || parallel >= l.parallels[i] {
		return netip.Addr{}
	}
	return addressOf(i, parallel)
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
