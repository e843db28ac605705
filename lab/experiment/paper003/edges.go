package paper003

import (
	"context"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/lab/edgepair"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/topology"
)

// Deadline is the time above the delay of the fastest undisturbed path for which a copy is in time: path 2 of table I
// is 10 to 15 ms slower than path 1, and paths 3 and 4 80 to 90 ms.
const Deadline = 20 * time.Millisecond

// edges returns the start of a pair of edges, on the server's host and on the viewer's, with the given copies.
func edges(copies string) func(context.Context, *topology.Network, *trial, *experiment.Settings) (*method, error) {
	return func(ctx context.Context, n *topology.Network, _ *trial, s *experiment.Settings) (*method, error) {
		volnet, err := s.Program("volnet")
		if err != nil {
			return nil, err
		}
		hosts := [2]string{HostServer, HostViewer}
		rule := fmt.Sprintf("protocol: tcp, deadline: %v, copies: %s", Deadline, copies)
		pair, err := edgepair.Start(ctx, n, edgepair.Config{Volnet: volnet, Sides: edgepair.Exchange(n, hosts, rule),
			Links: edgepair.Parallel(n, hosts, len(tableOne))})
		if err != nil {
			return nil, err
		}
		return &method{
			count: func(ctx context.Context) (sentPackets, error) { return countSent(ctx, pair) },
			stop:  pair.Close,
		}, nil
	}
}

// countSent returns the counts of the server's edge.
func countSent(ctx context.Context, p *edgepair.Pair) (n sentPackets, err error) {
	s, err := p.Status(ctx, HostServer)
	n.selected = s.Sent.Packets
	for i := range s.Paths {
		n.copies += s.Paths[i].Sent.Packets
	}
	return n, err
}
