package control

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
)

// RunVirtual runs a case in virtual time. An invalid case or option is an error that wraps ErrCase.
func RunVirtual(ctx context.Context, text string, o Options) (*Record, error) {
	s, err := NewSimulation(text, o)
	if err != nil {
		return nil, err
	}
	if err := s.Run(ctx); err != nil {
		return nil, err
	}
	return s.Record(), nil
}

// Record returns the record of a finished run.
func (s *Simulation) Record() *Record {
	r := &Record{scenario: s.scenario, ladder: s.flows[0].publisher.ladder}
	var queue lab.Distribution
	for _, f := range s.flows {
		r.receivers = append(r.receivers, f.ledger)
		queue.Join(&f.ledger.queue)
		r.discarded += f.watched.offered - f.watched.transmitted
	}
	ms := func(share float64) float64 { return lab.Milliseconds(queue.Percentile(share)) }
	r.queue = QueueFigures{ms(0.5), ms(0.95), ms(0.99), ms(1)}
	r.lowLatency, r.classic = classFigures(s.hops)
	r.audioQueue = s.audioQueue()
	if len(s.competitors) > 0 && s.scenario.participants == 0 && s.scenario.shorts == 0 {
		r.others = s.others()
	}
	return r
}

// audioQueue returns the 99th percentile of the waiting times of all audio, in ms, nil without audio.
func (s *Simulation) audioQueue() *float64 {
	if !s.scenario.options.Audio {
		return nil
	}
	var waited lab.Distribution
	for _, f := range s.flows {
		waited.Join(&f.audio.waited)
	}
	return figure(lab.Milliseconds(waited.Percentile(0.99)))
}

// besideTime is the time for which competitors are measured after they or the receiver have joined.
const besideTime = 3 * time.Second

// others returns the competitors' figures.
func (s *Simulation) others() *OtherFigures {
	begin := max(s.scenario.begin, s.scenario.rivals)
	var delays lab.Distribution
	var offered, discarded float64
	for _, c := range s.competitors {
		for _, d := range c.delays {
			if d.at >= begin && d.at < begin+besideTime {
				delays.Add(d.delay)
			}
		}
		for _, x := range c.samples {
			if x.at > begin && x.at <= begin+besideTime {
				offered += float64(x.offered)
				discarded += float64(x.discarded)
			}
		}
	}
	return &OtherFigures{Loss: discarded / max(offered, 1), QueueP95: lab.Milliseconds(delays.Percentile(0.95)),
		ShareOfFair: figure(s.othersRate() / s.scenario.fair())}
}

// othersRate returns the mean rate of a competitor from the time on from which rates count, in bit/s.
func (s *Simulation) othersRate() float64 {
	packets := 0.0
	for _, c := range s.competitors {
		for _, x := range c.samples {
			if x.at > s.scenario.measured {
				packets += float64(x.offered) - float64(x.discarded)
			}
		}
	}
	elapsed := (s.scenario.options.Duration - s.scenario.measured).Seconds()
	return packets * netem.SegmentBytes * 8 / elapsed / float64(len(s.competitors))
}
