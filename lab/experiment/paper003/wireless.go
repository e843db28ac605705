package paper003

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/topology"
)

// access is a kind of link between a client and the server.
type access struct {
	name          string
	rateBPS       int
	delay, jitter time.Duration
	loss          float64
}

// The kinds of links, in the order of volpeer's --interfaces.
const (
	wifi = iota
	cellular
)

// accesses are the links of each client.
var accesses = [...]access{
	wifi:     {name: "wifi", rateBPS: 40e6, delay: 8 * time.Millisecond, jitter: 2 * time.Millisecond, loss: 0.005},
	cellular: {name: "5g", rateBPS: 12e6, delay: 25 * time.Millisecond, jitter: 4 * time.Millisecond},
}

// config returns the parameters of both directions.
func (a *access) config() netem.Config {
	c := netem.DefaultConfig()
	c.RateBPS, c.Delay, c.Jitter, c.Loss, c.QueueDelay = a.rateBPS, a.delay, a.jitter, a.loss, 2*queueDelay
	return c
}

// member is a client. media is the direction of its media on the links, of which Forth leads to the server.
type member struct {
	host  string
	media topology.Way
}

const hostPublisher = "publisher"

// clients are the publisher and the watcher, in this order.
var clients = [...]member{{hostPublisher, topology.Forth}, {HostViewer, topology.Back}}

// link returns the name of a client's link.
func (m *member) link(kind int) string { return m.host + "-" + accesses[kind].name }

// outage is a failure of one link.
type outage struct {
	client, kind int
	from, to     time.Duration
}

// outageCycle is the time after which the outages begin again.
const outageCycle = time.Minute

// outages are those of one cycle. At no time both links of a client fail.
var outages = []outage{
	{1, wifi, 6 * time.Second, 7 * time.Second},
	{0, wifi, 12 * time.Second, 13 * time.Second},
	{1, wifi, 18 * time.Second, 18300 * time.Millisecond},
	{1, wifi, 18450 * time.Millisecond, 18700 * time.Millisecond},
	{0, wifi, 26 * time.Second, 26300 * time.Millisecond},
	{1, cellular, 32 * time.Second, 33 * time.Second},
	{0, cellular, 34 * time.Second, 35 * time.Second},
	{1, wifi, 40 * time.Second, 43 * time.Second},
	{0, wifi, 48 * time.Second, 50 * time.Second},
}

// silent reports whether an outage is a loss of all packets of the link.
func (o *outage) silent(failure string) bool { return failure == failureLoss || o.kind != wifi }

// wirelessLayout returns the network, with the outages in which all packets are lost.
func wirelessLayout(failure string, seed uint64) *topology.Topology {
	t := &topology.Topology{
		Hosts: map[string]topology.Host{HostServer: {}},
		Links: make(map[string]topology.Link),
		Seed:  seed,
	}
	for i, client := range clients {
		t.Hosts[client.host] = topology.Host{}
		for kind := range accesses {
			good := accesses[kind].config()
			dead := good
			dead.Loss = 1
			d := topology.Direction{Config: good}
			for _, o := range outages {
				if o.client == i && o.kind == kind && o.silent(failure) {
					d.Schedule = append(d.Schedule, topology.Change{At: o.from, Config: dead},
						topology.Change{At: o.to, Config: good})
					d.Repeat = outageCycle
				}
			}
			back := d
			back.Schedule = slices.Clone(d.Schedule)
			t.Links[client.link(kind)] = topology.Link{Forth: d, Back: back}
			t.Paths = append(t.Paths, topology.Path{From: client.host, To: HostServer,
				Through: []topology.Passage{{Link: client.link(kind)}}})
		}
	}
	return t
}

// unplug sets the interfaces of clients down and up again, until the context ends. began is the beginning of the first
// cycle.
func unplug(ctx context.Context, n *topology.Network, c *conference, began time.Time) error {
	if c.Failure != failureUnplugged {
		return nil
	}
	for cycle := time.Duration(0); ; cycle += outageCycle {
		for _, o := range outages {
			if o.silent(c.Failure) {
				continue
			}
			for _, change := range []struct {
				at time.Duration
				up bool
			}{{o.from, false}, {o.to, true}} {
				timer := time.NewTimer(time.Until(began.Add(cycle + change.at)))
				select {
				case <-timer.C:
				case <-ctx.Done():
					timer.Stop()
					return nil
				}
				if err := plug(n, clients[o.client].host, topology.InterfaceName(o.kind), change.up); err != nil {
					return err
				}
			}
		}
	}
}

// plug sets an interface of a host up or down.
func plug(n *topology.Network, host, name string, up bool) error {
	err := n.Inside(host, func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if up {
			return netlink.LinkSetUp(link)
		}
		return netlink.LinkSetDown(link)
	})
	if err != nil {
		return fmt.Errorf("set %s of %s up %t: %w", name, host, up, err)
	}
	return nil
}
