package cast

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/hosts"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// Warming is the time between the first frame and the window: buffers fill, estimates rise, the source's first loop
// ends.
const Warming = 2 * time.Second

// Window is the measured time, by the clock of this machine, which all namespaces share.
type Window struct {
	From, To time.Time
	// Busy is the used share of all processors' time, 0 to 1, of the busiest machine.
	Busy float64
	// Disturbed and Late have the meaning of the fields of experiment.Pace.
	Disturbed, Late string
}

// Measure waits for Warming, and then measures for the iteration's duration.
func (c *Cast) Measure(ctx context.Context) (Window, error) {
	if err := lab.Pause(ctx, Warming); err != nil {
		return Window{}, err
	}
	before, err := c.MachineTimes()
	if err != nil {
		return Window{}, err
	}
	if c.network != nil {
		c.network.Restart()
	}
	c.readCPU(0)
	w := Window{From: time.Now()}
	if err := lab.Pause(ctx, c.settings.Duration); err != nil {
		return Window{}, err
	}
	w.To = time.Now()
	c.readCPU(1)
	after, err := c.MachineTimes()
	if err != nil {
		return Window{}, err
	}
	w.Busy = hosts.Busiest(before, after)
	if c.network != nil {
		v := c.network.Validity()
		w.Disturbed, w.Late = v.Disturbance, v.Reason
	}
	return w, nil
}

// MachineTimes returns the processor times of all machines, for hosts.Busiest.
func (c *Cast) MachineTimes() (map[string]lab.MachineTime, error) {
	if c.settings.Hosts != nil {
		return c.settings.Hosts.MachineTimes()
	}
	here, err := lab.ReadMachineTime()
	return map[string]lab.MachineTime{"": here}, err
}

// Contains reports whether a frame was captured in the window.
func (w *Window) Contains(r *frametimes.Record) bool {
	at := r.Time(frametimes.Captured)
	return !at.Before(w.From) && at.Before(w.To)
}

// Seconds returns the length of the window.
func (w *Window) Seconds() float64 { return w.To.Sub(w.From).Seconds() }

// Judge judges an outcome by the numbers of frames, the machine's utilisation and disturbances, as
// experiment.Outcome.Judge does.
func (w *Window) Judge(o *experiment.Outcome, wanted, done, dropped int) {
	o.Judge(experiment.Pace{Wanted: wanted, Done: done, DroppedByCPU: dropped, Busy: w.Busy, Disturbed: w.Disturbed,
		Late: w.Late})
}

func (c *Cast) readCPU(end int) {
	for _, p := range c.players {
		p.cpu[end] = p.Time()
	}
}

// CPU returns the player's processor time in the window, in per cent of one core.
func (p *Player) CPU(w Window) float64 {
	return 100 * (p.cpu[1] - p.cpu[0]).Seconds() / w.Seconds()
}
