package router

import (
	"errors"
	"net/netip"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

// Errors of Start, wrapped with what was attempted.
var (
	// ErrPrivileges says that this process, or this system, may not make network namespaces.
	ErrPrivileges = errors.New("network namespaces take root on Linux (CAP_SYS_ADMIN and CAP_NET_ADMIN)")
	// ErrTUN says that there is no TUN device.
	ErrTUN = errors.New("no TUN device (/dev/net/tun): load the module tun, or give the container --device /dev/net/tun")
)

// Plan is what a Router makes.
type Plan struct {
	Namespaces []Namespace
	Wires      []Wire
	// Routes say how packets go, each in one direction. Packets without a route are dropped and counted.
	Routes []Route
	// Seed is what random decisions follow from, together with the names of wires.
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
	// Address is an IPv4 address with the length of its network's prefix.
	Address netip.Prefix
}

// Wire is one direction of a link.
type Wire struct {
	// Name tells the wires of a plan apart. Random decisions follow from it.
	Name string
	// Config are the parameters at the beginning.
	Config netem.Config
	// Trace is the rate in place of Config.RateBPS, nil for none.
	Trace *netem.RateTrace
	// Schedule are changes of parameters in the order of their times; with a Trace they leave the rate alone.
	Schedule []Change
	// Repeat is after how long Config and Schedule begin again, 0 for never.
	Repeat time.Duration
}

// Change is parameters from a time on, which counts from the beginning.
type Change struct {
	At     time.Duration
	Config netem.Config
}

// Route is the wires between two addresses, at most 255, given by their index in the plan. Without wires a packet arrives at once.
type Route struct {
	From, To netip.Addr
	Wires    []int
}
