package transport

import (
	"errors"
	"fmt"
	"testing"

	"github.com/volsfu/volsfu/internal/transport/hostnet"
	"github.com/volsfu/volsfu/internal/udp"
	"github.com/volsfu/volsfu/test/namespace"
)

// inside returns the network of a namespace.
func inside(n *namespace.Namespace) hostNetwork {
	return hostNetwork{
		find: func(name string, ipv6 bool) (found hostnet.Interface, err error) {
			n.Do(func() { found, err = hostnet.NamedInterface(name, ipv6) })
			return found, err
		},
		listen: func(config udp.Config) (port *udp.Port, err error) {
			n.Do(func() { port, err = udp.Listen(config) })
			return port, err
		},
	}
}

// TestInterfaceReturns connects a client with two interfaces to a server in another namespace, removes the preferred
// interface, and adds it again with another address.
func TestInterfaceReturns(t *testing.T) {
	d := &dualPair{pair: newPair(t), up: newCopyCounter(), down: newCopyCounter()}
	here, there := namespace.New(t), namespace.New(t)
	// The client looks at the interfaces of the namespace until it is closed.
	t.Cleanup(func() { _ = errors.Join(d.answers.Close(), d.endpoints[1].Close()) })
	cable := func(number, address string) {
		t.Helper()
		here.Run(t, fmt.Sprintf("ip link add n5a%s type veth peer name n5b%s netns %d", number, number, there.Thread))
		here.Run(t, "ip address add 10.9."+number+"."+address+"/24 dev n5a"+number)
		here.Run(t, "ip link set n5a"+number+" up")
		there.Run(t, "ip address add 10.9."+number+".1/24 dev n5b"+number)
		there.Run(t, "ip link set n5b"+number+" up")
		here.Run(t, "ip route add 10.9.9.1 via 10.9."+number+".1 dev n5a"+number+" metric 10"+number)
	}
	here.Run(t, "ip link set lo up")
	there.Run(t, "ip link set lo up")
	there.Run(t, "ip address add 10.9.9.1/32 dev lo")
	cable("0", "2")
	cable("1", "2")
	replace := func(at int, peer **Peer, sink Sink, listen func() (*Endpoint, error)) {
		t.Helper()
		endpoint, err := listen()
		if err != nil {
			t.Fatal(err)
		}
		made, err := endpoint.NewPeer(sink)
		if err = errors.Join(err, (*peer).Close(), d.endpoints[at].Close()); err != nil {
			t.Fatal(err)
		}
		*peer, d.endpoints[at] = made, endpoint
	}
	replace(0, &d.offers, d.up, func() (endpoint *Endpoint, err error) {
		config := DefaultConfig()
		config.Address, config.Port, config.TCP = "10.9.9.1", 0, false
		there.Do(func() { endpoint, err = Listen(config) })
		return endpoint, err
	})
	replace(1, &d.answers, d.down, func() (*Endpoint, error) {
		config := ClientConfig()
		config.Interfaces = []string{"n5a0", "n5a1"}
		return listenEach(config, inside(here))
	})
	d.join(true)
	d.awaitPath(0)
	here.Run(t, "ip link delete n5a0")
	d.awaitRoutes(1, false)
	cable("0", "3")
	d.awaitPath(0)
	d.send(0, 20, true)
	for name, c := range map[string]*copyCounter{"up": d.up, "down": d.down} {
		d.until("packets "+name, func() bool {
			first, repeated := c.counts()
			return first == 20 && repeated == 20
		})
	}
}

// TestUnusableInterfaces names interfaces that cannot be used.
func TestUnusableInterfaces(t *testing.T) {
	n := namespace.New(t)
	n.Run(t, "ip link add n5down type veth peer name n5bare")
	n.Run(t, "ip link set n5bare up")
	n.Run(t, "ip link set lo up")
	for text, names := range map[string][]string{
		`unusable network interface: this host has no interface "n5none"`:           {"lo", "n5none"},
		`unusable network interface: interface "n5down" is down`:                    {"n5down"},
		`unusable network interface: interface "n5bare" has no usable IPv4 address`: {"lo", "n5bare"},
		`unusable network interface: "lo" is named twice`:                           {"lo", "n5bare", "lo"},
		`unusable network interface: 9 names, expected at most 8`:                   make([]string, 9),
	} {
		config := ClientConfig()
		config.Interfaces = names
		err := config.Validate()
		if err == nil {
			_, err = listenEach(config, inside(n))
		}
		if !errors.Is(err, ErrInterface) || err.Error() != text {
			t.Errorf("interfaces %q: %v, expected: %s", names, err, text)
		}
	}
}
