package direct

import (
	"context"
	"errors"
	"time"

	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/hosts"
	"github.com/volsfu/volsfu/lab/topology"
)

// Metered measures a network and the machine of the network.
type Metered struct {
	// Network is nil if the programs run on the hosts of the settings.
	Network *topology.Network
	hosts   *hosts.Session
	// Began is the beginning of the current measurement.
	Began time.Time

	machine map[string]lab.MachineTime
	ended   *load // nil before End
}

// load is the machine's utilisation and the network's validity.
type load struct {
	busy    float64
	network router.Validity
}

// OpenMetered starts a network. If this machine cannot have networks, the returned outcome is a skip.
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

// OnHosts measures the hosts of a session and not their network.
func OnHosts(s *hosts.Session) (*Metered, error) {
	m := &Metered{hosts: s}
	return m, m.Begin()
}

// Close closes the network.
func (m *Metered) Close() error {
	if m.Network == nil {
		return nil
	}
	return m.Network.Close()
}

// machines returns the processor times of all machines.
func (m *Metered) machines() (map[string]lab.MachineTime, error) {
	if m.hosts != nil {
		return m.hosts.MachineTimes()
	}
	here, err := lab.ReadMachineTime()
	return map[string]lab.MachineTime{"": here}, err
}

// NewMetered measures a started network, and the machine. The error wraps lab.ErrProc.
func NewMetered(network *topology.Network) (*Metered, error) {
	m := &Metered{Network: network}
	return m, m.Begin()
}

// Begin restarts the measurement of the machine's utilisation, and the counters of the network. The error wraps
// lab.ErrProc.
func (m *Metered) Begin() (err error) {
	if m.Network != nil {
		m.Network.Restart()
	}
	m.Began, m.ended = time.Now(), nil
	m.machine, err = m.machines()
	return err
}

// Until waits for a time since Begin, or until a channel is closed, which is not an error.
func (m *Metered) Until(ctx context.Context, since time.Duration, closed <-chan struct{}) error {
	timer := time.NewTimer(time.Until(m.Began.Add(since)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-closed:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// End ends the measurement for Judge: afterwards, while the last frames are awaited, the machine is mostly idle.
func (m *Metered) End() {
	m.ended = &load{}
	if now, err := m.machines(); err == nil {
		m.ended.busy = hosts.Busiest(m.machine, now)
	}
	if m.Network != nil {
		m.ended.network = m.Network.Validity()
	}
}

// Busy returns the utilisation of all processors between Begin and End, 0 to 1.
func (m *Metered) Busy() float64 {
	if m.ended == nil {
		m.End()
	}
	return m.ended.busy
}

// Judge judges an outcome, see experiment.Outcome.Judge. Judge adds the machine's utilisation between Begin and End,
// and the network's lateness, to the pace.
func (m *Metered) Judge(outcome *experiment.Outcome, pace experiment.Pace) {
	pace.Busy = m.Busy()
	pace.Disturbed, pace.Late = m.ended.network.Disturbance, m.ended.network.Reason
	outcome.Judge(pace)
}
