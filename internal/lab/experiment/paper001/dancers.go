package paper001

import (
	"fmt"
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
	both := slices.Concat(left.outcomes(), right.outcomes())
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
	wanted, done, dropped := 0, 0, 0
	for _, d := range []*dancer{&left, &right} {
		s := d.summary.Sent
		wanted += danceTiles * int(s.Captures+s.CapturesMissed)
		dropped += danceTiles*int(s.CapturesMissed+s.CapturesDropped) + int(d.summary.Got.FramesSkipped)
		done += int(d.summary.Got.FramesShown)
	}
	w.Judge(o, wanted, done, dropped)
	return nil
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
	first, _, _ := delays(d.outcomes())
	if len(first) == 0 {
		return
	}
	p95 := experiment.Quantile(first, 0.95)
	o.Set("first_packet_p95"+suffix, p95)
	bound := time.Duration(float64(time.Second)/rate) + 2*p.Delay + decisionMargin
	o.Set("bound"+suffix, lab.Milliseconds(bound))
}

// outcomes are those of the decisions after warming up that were not overtaken by another one before their first packet came.
func (d *dancer) outcomes() []carriage.DecisionOutcome {
	return slices.DeleteFunc(slices.Clone(d.summary.Got.Decisions), func(x carriage.DecisionOutcome) bool {
		return x.At < cast.Warming.Seconds() || x.Superseded && x.FirstPacket < 0
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
