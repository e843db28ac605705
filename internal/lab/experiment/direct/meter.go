package direct

import (
	"context"
	"errors"
	"time"

	"github.com/volsfu/volsfu/internal/lab"
	"github.com/volsfu/volsfu/internal/lab/experiment"
	"github.com/volsfu/volsfu/internal/lab/topology"
	"github.com/volsfu/volsfu/internal/netem/router"
)

// Metered is a network and the machine that it runs on.
type Metered struct {
	Network *topology.Network
	// Began is when it was last begun to measure.
	Began time.Time

	machine lab.MachineTime
}

// OpenMetered starts a network. Where this machine cannot have one, the outcome says so.
func OpenMetered(ctx context.Context, layout *topology.Topology) (*Metered, *experiment.Outcome, error) {
	network, err := topology.Start(ctx, layout)
	if errors.Is(err, router.ErrPrivileges) || errors.Is(err, router.ErrTUN) {
		return nil, experiment.Skip("no network between processes: %v", err), nil
	}
	if err != nil {
		return nil, nil, err
	}
	m, err := NewMetered(network)
	if err != nil {
		return nil, nil, errors.Join(err, network.Close())
	}
	return m, nil, nil
}

// NewMetered measures a network that has started, and the machine. The error wraps lab.ErrProc.
func NewMetered(network *topology.Network) (*Metered, error) {
	m := &Metered{Network: network}
	return m, m.Begin()
}

// Begin begins to measure how busy the machine is, and the counters of the network anew. The error wraps lab.ErrProc.
func (m *Metered) Begin() (err error) {
	m.Network.Restart()
	m.Began = time.Now()
	m.machine, err = lab.ReadMachineTime()
	return err
}

// Judge judges an outcome, see experiment.Outcome.Judge. How busy the machine was since Begin, and whether the network was late, are added to the pace.
func (m *Metered) Judge(outcome *experiment.Outcome, pace experiment.Pace) {
	if now, err := lab.ReadMachineTime(); err == nil {
		pace.Busy = now.BusySince(m.machine)
	}
	if v := m.Network.Validity(); !v.Valid {
		pace.Late = v.Reason
	}
	outcome.Judge(pace)
}
