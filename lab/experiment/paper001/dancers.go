package paper001

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/cast"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// evaluate reads the results of all processes.
func (p *dance) evaluate(o *experiment.Outcome, all *dancers, w cast.Window) error {
	left, err := readDancer(all.left)
	if err != nil {
		return err
	}
	right, err := readDancer(all.right)
	if err != nil {
		return err
	}
	// The left peer watches the right peer's 30 frames per second, and vice versa.
	left.watched(o, p, &right, rightRate, w)
	right.watched(o, p, &left, leftRate, w)
	both := slices.Concat(left.outcomes(w), right.outcomes(w))
	o.Set("decisions", float64(len(both)))
	for _, a := range answers {
		o.Sample(a.name, a.times(both))
	}
	o.Set("unanswered", float64(len(both)-len(answers[0].times(both))))
	o.Set("uplink", left.summary.Sent.Mbps+right.summary.Sent.Mbps)
	o.Set("downlink", left.summary.Got.Mbps+right.summary.Got.Mbps)
	o.Set("cpu_left", all.left.CPU(w))
	o.Set("cpu_right", all.right.CPU(w))
	if all.server != nil {
		o.Set("cpu_server", all.server.CPU(w))
	}
	var c counts
	for _, d := range []*dancer{&left, &right} {
		c.add(danceTiles, d.summary.Sent, d.summary.Got)
	}
	w.Judge(o, c.wanted, c.done, c.dropped)
	noteCongestion(o, left.summary)
	return nil
}

// counts are of tiles' frames: frames that fell due, shown frames, and frames that encoding or decoding did not
// process.
type counts struct{ wanted, done, dropped int }

// add adds a publisher's counts, and the counts of a receiver.
func (c *counts) add(tiles int, sent *carriage.Published, got *carriage.Received) {
	c.wanted += tiles * int(sent.Captures)
	c.dropped += tiles*int(sent.NotEncoded()) + int(got.FramesSkipped)
	c.done += int(got.FramesShown)
}

// dancer holds the results of a peer.
type dancer struct {
	summary *carriage.Summary
	records []frametimes.Record
	name    string
}

func readDancer(p *cast.Player) (d dancer, err error) {
	if d.summary, err = p.Summary(); err != nil {
		return d, err
	}
	d.name = d.summary.Name
	d.records, err = p.Records()
	return d, err
}

// watched sets the figures of this peer's reception of the other peer, which captures at the given rate.
func (d *dancer) watched(o *experiment.Outcome, p *dance, other *dancer, rate float64, w cast.Window) {
	var frames []frametimes.Record
	for _, r := range cast.In(cast.Join(other.records, d.records), w) {
		if r.Track.Participant != d.name && cast.Finished(&r) {
			frames = append(frames, r)
		}
	}
	suffix := fmt.Sprintf("_%g", rate)
	latency := cast.Layer(frames, frametimes.Service)
	o.Sample("latency"+suffix, latency)
	o.Set("fps"+suffix, float64(len(frames))/danceTiles/w.Seconds())
	points := make([][2]float64, 0, len(frames))
	for i := range frames {
		of := frames[i].Layers()
		if l, known := of.Get(frametimes.Service); known {
			points = append(points, [2]float64{frames[i].Time(frametimes.Captured).Sub(w.From).Seconds(),
				l.Seconds() * 1000})
		}
	}
	o.Series("latency at "+fmt.Sprintf("%g frames/s", rate), "s", "ms", points)
	p.answered(o, d.outcomes(w), rate, w)
}

// answer is an effect of a decision.
type answer struct {
	name string
	// said is the name of the answer in notes.
	said string
	// after returns the time from the decision to the effect, in milliseconds; less than 0 if there was none.
	after func(*carriage.DecisionOutcome) float64
}

// answers lists all answers.
var answers = []answer{
	{"first_packet", "first packet", func(x *carriage.DecisionOutcome) float64 { return x.FirstPacket }},
	{"decoded", "decoded frame", func(x *carriage.DecisionOutcome) float64 { return x.Decoded }},
	{"shown", "shown frame", func(x *carriage.DecisionOutcome) float64 { return x.Shown }},
}

// answered sets the 95th percentiles from the decisions of a peer that watches a rate to their effects, and the bound
// of the first packet.
func (p *dance) answered(o *experiment.Outcome, outcomes []carriage.DecisionOutcome, rate float64, w cast.Window) {
	if len(outcomes) == 0 {
		return
	}
	suffix := fmt.Sprintf("_%g", rate)
	for _, a := range answers {
		p95 := a.p95(outcomes)
		if math.IsInf(p95, 1) {
			// A missing figure would be left out of means over iterations, and figures must be finite.
			p95 = w.Seconds() * 1000
			o.Note("%s, %v, %g frames/s: more than 5 %% of the decisions had no %s; there is no 95th "+
				"percentile, and the report has the whole measured time instead.", p.named(), p.Delay, rate, a.said)
		}
		o.Set(a.name+"_p95"+suffix, p95)
	}
	bound := time.Duration(float64(time.Second)/rate) + 2*p.Delay + decisionMargin
	o.Set("bound"+suffix, lab.Milliseconds(bound))
}

// named returns the system, with the length of its segments if it has segments.
func (p *dance) named() string {
	if p.Segment == 0 {
		return p.System
	}
	return fmt.Sprintf("%s in segments of %v", p.System, p.Segment)
}

// p95 returns the 95th percentile of the time from all decisions to the answer, in milliseconds. The result is infinite
// if more than 5 % of the decisions have no answer. Decisions that were overtaken by the next decision count.
func (a *answer) p95(outcomes []carriage.DecisionOutcome) float64 {
	all := make([]float64, 0, len(outcomes))
	for i := range outcomes {
		after := a.after(&outcomes[i])
		if after < 0 {
			after = math.Inf(1)
		}
		all = append(all, after)
	}
	return experiment.Quantile(all, 0.95)
}

// outcomes returns the decisions after warming up, for as many seconds as are measured. The last decisions are
// excluded: while the processes are being stopped, decisions may have no answer.
func (d *dancer) outcomes(w cast.Window) []carriage.DecisionOutcome {
	return slices.DeleteFunc(slices.Clone(d.summary.Got.Decisions), func(x carriage.DecisionOutcome) bool {
		since := x.At - cast.Warming.Seconds()
		return since < 0 || since >= w.Seconds()
	})
}

// times returns the times from decisions to the answer, if any, in milliseconds.
func (a *answer) times(outcomes []carriage.DecisionOutcome) (all []float64) {
	for i := range outcomes {
		if after := a.after(&outcomes[i]); after >= 0 {
			all = append(all, after)
		}
	}
	return all
}
