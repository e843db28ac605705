package paper001

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/lab"
	"github.com/volsfu/volsfu/internal/lab/carriage"
	"github.com/volsfu/volsfu/internal/lab/experiment"
	"github.com/volsfu/volsfu/internal/lab/experiment/cast"
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
	first, decoded, shown := delays(both)
	o.Set("unanswered", float64(len(both)-len(first)))
	o.Sample("first_packet", first)
	o.Sample("decoded", decoded)
	o.Sample("shown", shown)
	if len(shown) > 0 {
		o.Set("shown_p95", experiment.Quantile(shown, 0.95))
	}
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

// answered sets the 95th percentile from decisions of one who watches a rate to their first packets, and its bound.
func (p *dance) answered(o *experiment.Outcome, outcomes []carriage.DecisionOutcome, rate float64, w cast.Window) {
	p95, known := firstPacketP95(outcomes)
	if !known {
		return
	}
	suffix := fmt.Sprintf("_%g", rate)
	if math.IsInf(p95, 1) {
		// No figure would be left out of means over iterations, and none can be infinite.
		p95 = w.Seconds() * 1000
		o.Note("%s, %v, %g frames/s: no packet answered more than 5 %% of the decisions, so that there is no 95th percentile; all of the measured time stands for it.", p.System, p.Delay, rate)
	}
	o.Set("first_packet_p95"+suffix, p95)
	bound := time.Duration(float64(time.Second)/rate) + 2*p.Delay + decisionMargin
	o.Set("bound"+suffix, lab.Milliseconds(bound))
}

// firstPacketP95 is the 95th percentile from all decisions to their first packets, in milliseconds: infinite where more than 5 % have none, be it that the
// next decision overtook them. It is false without decisions.
func firstPacketP95(outcomes []carriage.DecisionOutcome) (p95 float64, known bool) {
	all := make([]float64, 0, len(outcomes))
	for _, x := range outcomes {
		if x.FirstPacket < 0 {
			x.FirstPacket = math.Inf(1)
		}
		all = append(all, x.FirstPacket)
	}
	return experiment.Quantile(all, 0.95), len(all) > 0
}

// outcomes are those of the decisions after warming up, as many seconds of them as are measured: the last ones, when everybody is being stopped, can have no answer.
func (d *dancer) outcomes(w cast.Window) []carriage.DecisionOutcome {
	return slices.DeleteFunc(slices.Clone(d.summary.Got.Decisions), func(x carriage.DecisionOutcome) bool {
		since := x.At - cast.Warming.Seconds()
		return since < 0 || since >= w.Seconds()
	})
}

// delays are what passed from decisions until the first packet, the first frame decoded and the first one shown, where these came, in milliseconds.
func delays(outcomes []carriage.DecisionOutcome) (first, decoded, shown []float64) {
	for _, x := range outcomes {
		for _, v := range []struct {
			at   float64
			into *[]float64
		}{{x.FirstPacket, &first}, {x.Decoded, &decoded}, {x.Shown, &shown}} {
			if v.at >= 0 {
				*v.into = append(*v.into, v.at)
			}
		}
	}
	return first, decoded, shown
}
