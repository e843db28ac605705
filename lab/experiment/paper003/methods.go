package paper003

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/edge"
	"github.com/volsfu/volsfu/lab/edgepair"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/topology"
)

// arm is a network and a way to use its paths.
type arm struct {
	// undisturbed is set if the delays do not vary.
	undisturbed bool
	// start starts the method; nil leaves all packets on the default path.
	start func(context.Context, *topology.Network, *trial, *experiment.Settings) (*method, error)
}

// arms are the arms by name. "off" uses the default path, as "undisturbed" does. "redirection" uses the path with the
// shortest round trip: section IV-D. "volnet" and "all" are the pair of edges with path control, and with copies on all
// paths at all times. "paper" is the paper's system as published.
var arms = map[string]arm{
	"undisturbed": {undisturbed: true},
	"off":         {},
	"redirection": {start: redirection},
	"volnet":      {start: edges("auto")},
	"all":         {start: edges("all")},
	"paper":       {start: published},
}

// armNames returns the names, sorted.
func armNames() []string { return slices.Sorted(maps.Keys(arms)) }

// method is a way to use the paths of a running network. Each function may be nil.
type method struct {
	// control works until the context ends. The variation begins at onset.
	control func(ctx context.Context, onset time.Time) error
	// requested is called when a request for a frame has reached the server, by one goroutine.
	requested func()
	// count returns the packets to the viewer so far.
	count func(context.Context) (sentPackets, error)
	// describe adds figures of the method itself to the outcome of a run whose variation began at onset.
	describe func(o *experiment.Outcome, onset time.Time)
	stop     func() error
}

// sentPackets are counts of packets to the viewer: each counted once, and on all paths.
type sentPackets struct{ selected, copies uint64 }

// start starts the method of an arm. If this machine cannot have it, the returned outcome is a skip.
func (t *trial) start(ctx context.Context, n *topology.Network, s *experiment.Settings) (*method, *experiment.Outcome,
	error) {
	start := arms[t.Arm].start
	if start == nil {
		return &method{}, nil, nil
	}
	m, err := start(ctx, n, t, s)
	if errors.Is(err, edgepair.ErrHost) || errors.Is(err, edge.ErrPrivileges) || errors.Is(err, edge.ErrUnsupported) {
		return nil, experiment.Skip("no copies of packets: %v", err), nil
	}
	return m, nil, err
}

// close stops the method.
func (m *method) close() error {
	if m.stop == nil {
		return nil
	}
	return m.stop()
}
