package cast

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// Warming is the time between the first frame and the window: buffers fill, estimates rise, the source's first loop
// ends.
const Warming = 2 * time.Second

// Window is the measured time, by the clock of this machine, which all namespaces share.
type Window struct {
	From, To time.Time
	// Busy is the used share of all processors' time, 0 to 1.
	Busy float64
	// Disturbed and Late have the meaning of the fields of experiment.Pace.
	Disturbed, Late string
}

// Measure waits for Warming, and then measures for the iteration's duration.
func (c *Cast) Measure(ctx context.Context) (Window, error) {
	if err := lab.Pause(ctx, Warming); err != nil {
		return Window{}, err
	}
	before, err := lab.ReadMachineTime()
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
	after, err := lab.ReadMachineTime()
	if err != nil {
		return Window{}, err
	}
	w.Busy = after.BusySince(before)
	if c.network != nil {
		v := c.network.Validity()
		w.Disturbed, w.Late = v.Disturbance, v.Reason
	}
	return w, nil
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
		p.cpu[end] = ProcessTime(p.PID())
	}
}

// CPU returns the player's processor time in the window, in per cent of one core.
func (p *Player) CPU(w Window) float64 {
	return 100 * (p.cpu[1] - p.cpu[0]).Seconds() / w.Seconds()
}

// The fields of /proc/PID/stat after the command, which ends with the last parenthesis (proc(5)): time in user mode and
// in the kernel, in ticks of 10 ms.
const (
	fieldUser   = 11
	fieldSystem = 12
	tick        = 10 * time.Millisecond
)

// ProcessTime returns the processor time of a process; 0 if the system does not report it.
func ProcessTime(pid int) time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) <= fieldSystem {
		return 0
	}
	user, _ := strconv.ParseInt(string(fields[fieldUser]), 10, 64)
	system, _ := strconv.ParseInt(string(fields[fieldSystem]), 10, 64)
	return time.Duration(user+system) * tick
}
