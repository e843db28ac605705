package cast

import (
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// convert converts the stamps that a player took to the clock of this machine. A receiver's copy of a sender's stamp is
// removed, since Join adds the stamp from the sender's own record.
func (p *Player) convert(records []frametimes.Record) error {
	if p.cast.settings.Hosts == nil {
		return nil
	}
	for i := range records {
		r := &records[i]
		received := r.Has(frametimes.FirstReceived) || r.Has(frametimes.LastReceived) || r.Has(frametimes.Reassembled)
		for stamp := range frametimes.Stamp(frametimes.Stamps) {
			switch {
			case !r.Has(stamp):
			case received && stamp.Host() != frametimes.Receiver:
				r.Times[stamp] = 0
			default:
				if err := p.cast.Convert(p.host, &r.Times[stamp]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Convert converts times of a host, in nanoseconds since 1970, to the clock of this machine. 0 stays 0.
func (c *Cast) Convert(host string, times ...*int64) error {
	if c.settings.Hosts == nil {
		return nil
	}
	for _, t := range times {
		if *t == 0 {
			continue
		}
		o, err := c.settings.Hosts.Offset(host, time.Unix(0, *t))
		if err != nil {
			return err
		}
		*t -= int64(o.Ahead)
	}
	return nil
}

// NoteClocks sets the outcome's bound for the error of times between two hosts, by the clocks in a window.
func (c *Cast) NoteClocks(o *experiment.Outcome, w Window, from, to string) error {
	if c.settings.Hosts == nil {
		return nil
	}
	bound, err := c.settings.Hosts.Bound(from, to, w.From, w.To)
	o.ClockBound = lab.Milliseconds(bound)
	return err
}
