package topology

import (
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

// Errors of this package. The wrapping error names the invalid value and the expected one.
var (
	// ErrTopology reports an invalid topology.
	ErrTopology = errors.New("invalid topology")
	// ErrHost reports that a network has no host of that name.
	ErrHost = errors.New("no such host")
	// ErrLink reports that a network has no link of that name.
	ErrLink = errors.New("no such link")
)

// Topology describes a network before its start. The zero value has no hosts.
type Topology struct {
	// Hosts are the network namespaces by name.
	Hosts map[string]Host
	// Links are the parts of paths, by name.
	Links map[string]Link
	// Paths connect pairs of hosts, in both directions. The first path between two hosts connects their main addresses.
	// Each further path is parallel to the first and connects separate addresses and interfaces.
	Paths []Path
	// IPv6 is set if each IPv4 address of a host has an IPv6 address beside it.
	IPv6 bool
	// Ethernet is set if the interfaces of hosts are Ethernet devices (TAP) instead of TUN devices: programs of the
	// kernel (XDP, traffic control) see frames, and a packet takes the path of the interface and the link-layer
	// destination that it leaves with, whatever its IP addresses.
	Ethernet bool
	// Seed determines random decisions, together with the name of the link and the direction.
	Seed uint64
}

// Host is a network namespace.
type Host struct {
	// ClockOffset is how far the host's clock is ahead of the machine's, for programs that honour ClockOffsetVariable:
	// namespaces share the real-time clock.
	ClockOffset time.Duration
	// Sysctls are settings of the namespace's kernel network, such as net.ipv4.tcp_ecn: 1. Names begin with net.
	Sysctls map[string]string
}

// Link is a link with its two directions.
type Link struct{ Forth, Back Direction }

// Direction is one direction of a link.
type Direction struct {
	// Config holds the parameters at the beginning. Its zero value is a perfect link.
	Config netem.Config
	// Trace is the rate over time, which replaces Config.RateBPS; nil keeps Config.RateBPS.
	Trace *netem.RateTrace
	// Schedule lists changes of the parameters, in the order of their times.
	Schedule []Change
	// Repeat is the time after which Config and Schedule begin again, 0 for never.
	Repeat time.Duration
}

// Change sets the parameters from a time on.
type Change struct {
	// At counts from the start of the network and from every Restart.
	At time.Duration
	// Config has all parameters from this time on, including unchanged ones. If the direction has a Trace, the trace
	// continues and the rate in Config has no effect.
	Config netem.Config
}

// Path is the path of packets between two hosts: over its links from From to To, and over the same links in reverse
// order, in their other direction, from To to From. A path without links is a perfect wire.
type Path struct {
	From, To string
	Through  []Passage
}

// Passage is a link on a path.
type Passage struct {
	Link string
	// Reversed is set if packets from From to To take the link's Back direction.
	Reversed bool
}

// Duplex returns a link with the same parameters in both directions.
func Duplex(c netem.Config) Link {
	return Link{Forth: Direction{Config: c}, Back: Direction{Config: c}}
}

// Pair returns two hosts with one link, named "link". Forth is the direction from the first host to the second.
func Pair(from, to string, link Link) *Topology {
	return &Topology{
		Hosts: map[string]Host{from: {}, to: {}},
		Links: map[string]Link{"link": link},
		Paths: []Path{{From: from, To: to, Through: []Passage{{Link: "link"}}}},
	}
}

// Star returns a server and clients. Each client has an access link with the client's name. Forth is the direction from
// the client to the server. Clients reach each other over both of their links.
func Star(server string, access map[string]Link) *Topology {
	t := &Topology{Hosts: map[string]Host{server: {}}, Links: make(map[string]Link)}
	clients := sortedKeys(access)
	for i, client := range clients {
		t.Hosts[client] = Host{}
		t.Links[client] = access[client]
		t.Paths = append(t.Paths, Path{From: client, To: server, Through: []Passage{{Link: client}}})
		for _, other := range clients[:i] {
			t.Paths = append(t.Paths, Path{From: client, To: other, Through: []Passage{{Link: client},
				{Link: other, Reversed: true}}})
		}
	}
	return t
}

// Limits of a topology: sufficient for experiments on one machine, and low enough for one thread that polls all
// interfaces. Hosts are numbered by the last byte of an address, from 1 to 254.
const (
	maxHosts    = 254
	maxParallel = 16
	maxPassages = 16
)

// Validate reports the first invalid value, by its key. The error wraps ErrTopology.
func (t *Topology) Validate() error {
	if n := len(t.Hosts); n < 1 || n > maxHosts {
		return fmt.Errorf("%w: hosts has %d entries, expected 1 to %d", ErrTopology, n, maxHosts)
	}
	for _, name := range sortedKeys(t.Hosts) {
		if err := t.Hosts[name].validate("hosts."+name, name); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(t.Links) {
		if !validName(name) {
			return fmt.Errorf("%w: links.%s: %s", ErrTopology, name, expectedName)
		}
		link := t.Links[name]
		if err := link.Forth.validate("links." + name + ".forth"); err != nil {
			return err
		}
		if err := link.Back.validate("links." + name + ".back"); err != nil {
			return err
		}
	}
	return t.validatePaths()
}
