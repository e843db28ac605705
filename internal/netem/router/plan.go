package router

import (
	"errors"
	"net/netip"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/netem/middlebox"
)

// Errors of Start. The wrapping error has the attempted operation.
var (
	// ErrPrivileges is the sentinel of a process or system that may not create network namespaces.
	ErrPrivileges = errors.New("network namespaces take root on Linux (CAP_SYS_ADMIN and CAP_NET_ADMIN)")
	// ErrTUN is the sentinel of a missing TUN device.
	ErrTUN = errors.New("no TUN device (/dev/net/tun): load the module tun, " +
		"or give the container --device /dev/net/tun")
)

// Plan describes a Router.
type Plan struct {
	Namespaces []Namespace
	Wires      []Wire
	// Routes are the paths of packets, each in one direction. Packets without a route are dropped and counted.
	Routes []Route
	// Ethernet is set if the interfaces are Ethernet devices (TAP) instead of TUN devices. The route of a frame is then
	// found by the interface that the frame leaves and its link-layer destination, whatever the addresses of the packet
	// inside. The interfaces know each other's link-layer addresses: no ARP is needed, and none is answered.
	Ethernet bool
	// Seed determines random decisions, together with the names of wires.
	Seed uint64
}

// Namespace is a network namespace.
type Namespace struct {
	// Name is for statistics and errors.
	Name       string
	Interfaces []Interface
	// Sysctls are settings below net. by name.
	Sysctls map[string]string
}

// Interface is an interface of a namespace, whose network is directly connected.
type Interface struct {
	Name string
	// Address is an IPv4 address with the length of its network's prefix; invalid for none, except with Ethernet.
	Address netip.Prefix
	// Address6 is an IPv6 address likewise; invalid for none.
	Address6 netip.Prefix
	// MTU is the maximum size of packets in bytes, 0 for 1,500.
	MTU int
	// Box changes or drops the packets of the interface; nil changes nothing. Outer is the address of the box, which
	// stands for the interface in routes; invalid for a box without an address. Not with Ethernet.
	Box   middlebox.Box
	Outer netip.Addr
}

// Wire is one direction of a link.
type Wire struct {
	// Name is unique in a plan. Random decisions depend on it.
	Name string
	// Config has the initial parameters.
	Config netem.Config
	// Trace is the rate in place of Config.RateBPS, nil for none.
	Trace *netem.RateTrace
	// Schedule has changes of parameters in the order of time; with a Trace the rate does not change.
	Schedule []Change
	// Repeat is the time after which Config and Schedule restart, 0 for never.
	Repeat time.Duration
}

// Change is a change of parameters at a time since the start.
type Change struct {
	At     time.Duration
	Config netem.Config
}

// Route is the wires between two addresses, at most 255, given by their index in the plan. Without wires a packet
// arrives at once. Both addresses are of one family.
type Route struct {
	From, To netip.Addr
	Wires    []int
}
