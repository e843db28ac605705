package edge

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// routeProtocol marks the routes that edges add. The numbers of routing daemons end below 200 (rt_protos of iproute2).
const routeProtocol = 217

// routeKey identifies a route of the main table.
type routeKey struct {
	To       netip.Prefix `json:"to"`
	Priority int          `json:"priority"`
	TOS      int          `json:"tos"`
}

// routeChange is a route that an edge has added or whose MTU it has changed.
type routeChange struct {
	routeKey
	// MTU is the MTU of the route before, 0 for none.
	MTU int `json:"mtu"`
	// Added reports whether the edge has added the route.
	Added bool `json:"added"`
}

// keyOf returns the key of a route, which is false for a route without a prefix.
func keyOf(route *netlink.Route, family int) (routeKey, bool) {
	key := routeKey{Priority: route.Priority, TOS: route.Tos}
	if route.Dst == nil {
		key.To = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if family == netlink.FAMILY_V6 {
			key.To = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		return key, true
	}
	address, ok := netip.AddrFromSlice(route.Dst.IP)
	bits, _ := route.Dst.Mask.Size()
	if family == netlink.FAMILY_V4 {
		address = address.Unmap()
	}
	key.To = netip.PrefixFrom(address, bits)
	return key, ok && key.To.IsValid()
}

// mainRoutes returns the unicast routes of the main table.
func mainRoutes(family int) ([]netlink.Route, error) {
	routes, err := netlink.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("read the routes: %w", err)
	}
	return slices.DeleteFunc(routes, func(r netlink.Route) bool { return r.Type != unix.RTN_UNICAST }), nil
}

// applyMTU sets the MTU of the routes to the prefixes. A prefix that only a wider route covers gets routes of its own,
// with the next hops of the wider one, so that the wider one does not change for other packets.
func (h *hostChanges) applyMTU(prefixes []netip.Prefix, mtu int) error {
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		ofFamily := slices.DeleteFunc(slices.Clone(prefixes), func(p netip.Prefix) bool {
			return p.Addr().Is4() != (family == netlink.FAMILY_V4)
		})
		if len(ofFamily) == 0 {
			continue
		}
		routes, err := mainRoutes(family)
		if err != nil {
			return err
		}
		for _, prefix := range ofFamily {
			if err := h.applyPrefix(prefix, routes, family, mtu); err != nil {
				return fmt.Errorf("set the MTU of the route to %s to %d: %w", prefix, mtu, denied(err))
			}
		}
	}
	return nil
}

func (h *hostChanges) applyPrefix(prefix netip.Prefix, routes []netlink.Route, family, mtu int) error {
	var covering []netlink.Route
	bits, exact := -1, false
	for i := range routes {
		route := &routes[i]
		key, ok := keyOf(route, family)
		switch {
		case !ok || h.added(key):
			continue
		case key.To == prefix, key.To.Bits() > prefix.Bits() && prefix.Contains(key.To.Addr()):
			exact = exact || key.To == prefix
			if err := h.set(route, key, mtu); err != nil {
				return err
			}
		case key.To.Contains(prefix.Addr()) && key.To.Bits() < prefix.Bits() && key.To.Bits() >= bits:
			if key.To.Bits() > bits {
				covering, bits = nil, key.To.Bits()
			}
			covering = append(covering, *route)
		}
	}
	if exact {
		covering = nil
	}
	return h.cover(prefix, covering, routes, family, mtu)
}

// set sets the MTU of a route that another program made.
func (h *hostChanges) set(route *netlink.Route, key routeKey, mtu int) error {
	if route.MTU == mtu {
		return nil
	}
	if !slices.ContainsFunc(h.Routes, func(c routeChange) bool { return c.routeKey == key }) {
		if err := h.saveRoutes(append(h.Routes, routeChange{routeKey: key, MTU: route.MTU})); err != nil {
			return err
		}
	}
	changed := *route
	changed.MTU = mtu
	return replaceRoute(&changed)
}

// replaceRoute replaces a route. The kernel reports flags of the next hop's state that a request must not have.
func replaceRoute(route *netlink.Route) error {
	route.Flags &= int(netlink.FLAG_ONLINK | netlink.FLAG_PERVASIVE)
	return netlink.RouteReplace(route)
}

// cover makes the added routes of a prefix those of the covering routes.
func (h *hostChanges) cover(prefix netip.Prefix, covering, routes []netlink.Route, family, mtu int) error {
	wanted := map[routeKey]bool{}
	for _, route := range covering {
		key := routeKey{prefix, route.Priority, route.Tos}
		wanted[key] = true
		if !h.added(key) {
			if err := h.saveRoutes(append(h.Routes, routeChange{routeKey: key, Added: true})); err != nil {
				return err
			}
		}
		route.Dst = &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
		route.Protocol, route.MTU = routeProtocol, mtu
		if slices.ContainsFunc(routes, func(present netlink.Route) bool {
			presentKey, _ := keyOf(&present, family)
			return presentKey == key && present.MTU == mtu && present.LinkIndex == route.LinkIndex &&
				present.Gw.Equal(route.Gw)
		}) {
			continue
		}
		if err := replaceRoute(&route); err != nil {
			return err
		}
	}
	for _, c := range slices.Clone(h.Routes) {
		if c.Added && c.To == prefix && !wanted[c.routeKey] {
			if err := h.undoRoute(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// added reports whether this edge has added the route.
func (h *hostChanges) added(key routeKey) bool {
	return slices.Contains(h.Routes, routeChange{routeKey: key, Added: true})
}

// saveRoutes writes the changes of routes before they are made.
func (h *hostChanges) saveRoutes(routes []routeChange) error {
	h.Routes = routes
	return h.save()
}

// undoRoute restores one route. A route that has gone needs nothing.
func (h *hostChanges) undoRoute(change routeChange) error {
	family := netlink.FAMILY_V4
	if change.To.Addr().Is6() {
		family = netlink.FAMILY_V6
	}
	routes, err := mainRoutes(family)
	if err != nil {
		return err
	}
	for i := range routes {
		route := &routes[i]
		if key, ok := keyOf(route, family); !ok || key != change.routeKey {
			continue
		}
		if change.Added {
			if route.Protocol == routeProtocol {
				err = netlink.RouteDel(route)
			}
		} else {
			route.MTU = change.MTU
			err = replaceRoute(route)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("restore the route to %s: %w", change.To, denied(err))
		}
	}
	return h.saveRoutes(slices.DeleteFunc(slices.Clone(h.Routes), func(c routeChange) bool { return c == change }))
}
