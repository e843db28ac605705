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

// evaluate reads what everybody left.
func (p *dance) evaluate(o *experiment.Outcome, all *dancers, w cast.Window) error {
	left, err := readDancer(all.left)
	if err != nil {
		return err
	}
	right, err := readDancer(all.right)
	if err != nil {
		return err
	}
	// The left one watches the right one's 30 frames per second, and the other way round.
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

// counts are of tiles' frames: those that fell due, those that were shown, and those that encoding or decoding did not get to.
type counts struct{ wanted, done, dropped int }

// add adds what one has published and what came of it, or of somebody else's, who watches.
func (c *counts) add(tiles int, sent *carriage.Published, got *carriage.Received) {
	c.wanted += tiles * int(sent.Captures)
	c.dropped += tiles*int(sent.NotEncoded()) + int(got.FramesSkipped)
	c.done += int(got.FramesShown)
}

// dancer is what a peer left.
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

// watched sets what this one has seen of the other one, who captures at a rate.
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
			points = append(points, [2]float64{frames[i].Time(frametimes.Captured).Sub(w.From).Seconds(), l.Seconds() * 1000})
		}
	}
	o.Series("latency at "+fmt.Sprintf("%g frames/s", rate), "s", "ms", points)
	p.answered(o, d.outcomes(w), rate, w)
}

// answer is something that comes of a decision.
type answer struct {
	name string
	// said is what a note calls it.
	said string
	// after is how long after the decision it came, in milliseconds; less than 0 where it did not.
	after func(*carriage.DecisionOutcome) float64
}

// answers are all of them.
var answers = []answer{
	{"first_packet", "first packet", func(x *carriage.DecisionOutcome) float64 { return x.FirstPacket }},
	{"decoded", "decoded frame", func(x *carriage.DecisionOutcome) float64 { return x.Decoded }},
	{"shown", "shown frame", func(x *carriage.DecisionOutcome) float64 { return x.Shown }},
}

// answered sets the 95th percentiles from decisions of one who watches a rate to what comes of them, and the bound of that to the first packet.
func (p *dance) answered(o *experiment.Outcome, outcomes []carriage.DecisionOutcome, rate float64, w cast.Window) {
	if len(outcomes) == 0 {
		return
	}
	suffix := fmt.Sprintf("_%g", rate)
	for _, a := range answers {
		p95 := a.p95(outcomes)
		if math.IsInf(p95, 1) {
			// No figure would be left out of means over iterations, and none can be infinite.
			p95 = w.Seconds() * 1000
			o.Note("%s, %v, %g frames/s: more than 5 %% of the decisions had no %s, so that there is no 95th percentile; all of the measured time stands for it.", p.named(), p.Delay, rate, a.said)
		}
		o.Set(a.name+"_p95"+suffix, p95)
	}
	bound := time.Duration(float64(time.Second)/rate) + 2*p.Delay + decisionMargin
	o.Set("bound"+suffix, lab.Milliseconds(bound))
}

// named is the system with the length of its segments, where these have one.
func (p *dance) named() string {
	if p.Segment == 0 {
		return p.System
	}
	return fmt.Sprintf("%s in segments of %v", p.System, p.Segment)
}

// p95 is the 95th percentile from all decisions to the answer, in milliseconds: infinite where more than 5 % have none, be it that the next decision overtook them.
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

// outcomes are those of the decisions after warming up, as many seconds of them as are measured: the last ones, when everybody is being stopped, can have no answer.
func (d *dancer) outcomes(w cast.Window) []carriage.DecisionOutcome {
	return slices.DeleteFunc(slices.Clone(d.summary.Got.Decisions), func(x carriage.DecisionOutcome) bool {
		since := x.At - cast.Warming.Seconds()
		return since < 0 || since >= w.Seconds()
	})
}

// times are what passed from decisions until the answer, where it came, in milliseconds.
func (a *answer) times(outcomes []carriage.DecisionOutcome) (all []float64) {
	for i := range outcomes {
		if after := a.after(&outcomes[i]); after >= 0 {
			all = append(all, after)
		}
	}
	return all
}
