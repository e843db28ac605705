//go:build linux

package traffic

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Kind is a kind of datagrams, by the facts from which the kernel derives IP identifications.
type Kind struct {
	Name     string
	IPv6     bool
	Segments int
	// Unconnected and Discover are those of Options.
	Unconnected bool
	Discover    int
	// Sockets is the number of flows at the same time.
	Sockets int
	// Count is the number of datagrams in a long run, a multiple of Segments and Sockets.
	Count int
}

// Kinds are datagrams that the IP identification does not distinguish, and connected sockets, whose identifications
// count. A long run of all kinds has 10,376,000 datagrams, 9,856,000 of them in one flow: their number exceeds 16 bits
// 150 times.
var Kinds = []Kind{
	{Name: "segments", Segments: 16, Sockets: 1, Count: 9_856_000},
	{Name: "segments with identification 0", Segments: 16, Unconnected: true, Discover: unix.IP_PMTUDISC_DO, Sockets: 1,
		Count: 160_000},
	{Name: "identification 0", Segments: 1, Unconnected: true, Discover: unix.IP_PMTUDISC_PROBE, Sockets: 1,
		Count: 40_000},
	{Name: "connected", Segments: 1, Sockets: 1, Count: 40_000},
	{Name: "eight sockets", Segments: 1, Sockets: 8, Count: 80_000},
	{Name: "IPv6", IPv6: true, Segments: 1, Sockets: 1, Count: 40_000},
	{Name: "segments over IPv6", IPv6: true, Segments: 16, Sockets: 1, Count: 160_000},
}

// Ends are two hosts, with an address of each IP version.
type Ends struct {
	From, To              Host
	Source, Destination   netip.Addr
	Source6, Destination6 netip.Addr
}

// Transfer sends datagrams of the kind between two ends, count in all, and adds up the results of the flows. The size,
// the datagrams in flight of all flows together and the rate of all together are those of o.
func (k *Kind) Transfer(ctx context.Context, e *Ends, o Options, count int, quiet time.Duration) (Result, error) {
	o.From, o.To, o.Source, o.Destination = e.From, e.To, e.Source, e.Destination
	if k.IPv6 {
		o.Source, o.Destination = e.Source6, e.Destination6
	}
	o.Segments, o.Unconnected, o.Discover = k.Segments, k.Unconnected, k.Discover
	o.InFlight, o.Rate = o.InFlight/k.Sockets, o.Rate/float64(k.Sockets)
	flows := make([]*Flow, k.Sockets)
	for i := range flows {
		var err error
		if flows[i], err = NewFlow(o); err != nil {
			return Result{}, err
		}
		defer func() { _ = flows[i].Close() }()
	}
	var mu sync.Mutex
	var sum Result
	var failed error
	var group sync.WaitGroup
	for _, f := range flows {
		group.Go(func() {
			r, err := f.Transfer(ctx, count/k.Sockets, quiet)
			mu.Lock()
			defer mu.Unlock()
			sum.Sent += r.Sent
			sum.Arrived += r.Arrived
			sum.Repeated += r.Repeated
			failed = errors.Join(failed, err)
		})
	}
	group.Wait()
	return sum, failed
}
