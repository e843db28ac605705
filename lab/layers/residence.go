package layers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/conversation"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/exposition"
)

// Residence checks the time in the server of the frames of experiment layers, at the highest rate that the machine
// carries.
type Residence struct {
	Progress lab.Progress
	Plan     conversation.Plan
	// Rates are tried in the order from the highest, in frames per second, until one rate is carried. Each is tried for
	// Length.
	Rates  []float64
	Length time.Duration
}

// Name implements lab.Check.
func (r *Residence) Name() string {
	return fmt.Sprintf("residence in the server under the load of the experiment layers: raw RGBD frames of %.1f "+
		"MB, one sender, %d receivers",
		conversation.FrameBytes/1e6, r.Plan.Receivers)
}

// Run implements lab.Check.
func (r *Residence) Run(ctx context.Context) ([]claim.Line, error) {
	programs, err := findPrograms()
	if err != nil {
		return nil, err
	}
	var lines []claim.Line
	for _, rate := range r.Rates {
		r.Progress.Say("%g frames per second, %.0f Mbit/s to the server", rate, megabits(rate))
		c, err := r.Plan.Run(ctx, programs.volsfu, rate, r.Length)
		if err != nil && !errors.Is(err, conversation.ErrNothing) {
			return lines, fmt.Errorf("%g frames per second: %w", rate, err)
		}
		carried := err == nil && c.Carries()
		lines = append(lines, claim.Information(
			fmt.Sprintf("%g frames per second: frames that arrived at all receivers", rate), share(c), "%"))
		if carried {
			return append(append(lines, r.highest(rate)), stayed(c, rate)...), nil
		}
	}
	return append(lines, r.highest(0)), nil
}

// highest returns the line of the highest rate that the server carries, 0 if it carries none. Then the server or the
// machine does not reach the state of the other lines.
func (r *Residence) highest(rate float64) claim.Line {
	return claim.AtLeast("highest carried rate, of the paper's 30", rate, "frames/s", slices.Min(r.Rates))
}

// The bounds of a packet's residence. At 30 frames per second, the packets of a frame arrive within 0.47 of the frame
// interval, 16 ms. Half of the packets may stay for a thirtieth of that time, and one in a hundred for half of it.
const (
	residenceP50 = 500 * time.Microsecond
	residenceP99 = 8 * time.Millisecond
)

func megabits(rate float64) float64 { return 8 * conversation.FrameBytes * rate / 1e6 }

// share returns the share of the due frames that arrived at the receivers, in per cent.
func share(c *conversation.Conversation) float64 {
	if c == nil || c.Wanted() == 0 {
		return 0
	}
	return 100 * float64(c.All()) / float64(c.Wanted())
}

// paperMegabits is the rate of the paper's frames at 30 per second (section III-B), which the paper gives without
// audio.
const paperMegabits = 845

// stayed returns the figures of a rate that is carried. The paper's server distributed a frame in some milliseconds,
// irregularly (figure 9).
func stayed(c *conversation.Conversation, rate float64) []claim.Line {
	ms := lab.Milliseconds
	var hold, frame, distribution lab.Distribution
	for i := range c.Records {
		layers := c.Records[i].Layers()
		for layer, d := range map[frametimes.Layer]*lab.Distribution{frametimes.ServerHold: &hold,
			frametimes.Frame: &frame} {
			if v, known := layers.Get(layer); known {
				d.Add(v)
			}
		}
	}
	for _, d := range c.Distributions {
		distribution.Add(d.Time)
	}
	lines := []claim.Line{
		claim.Information(fmt.Sprintf("content to the server at that rate (paper: %d), and to each receiver",
			paperMegabits), megabits(rate), "Mbit/s"),
		claim.AtMost("residence of a packet in the server without the pacer's hold, p50",
			ms(exposition.Quantile(c.Residence, 0.5)), "ms", ms(residenceP50)),
		claim.AtMost("residence of a packet in the server without the pacer's hold, p99",
			ms(exposition.Quantile(c.Residence, 0.99)), "ms", ms(residenceP99)),
	}
	for _, d := range []struct {
		name string
		of   *lab.Distribution
	}{
		{"first packet of a frame in to first packet out", &hold},
		{"distribution: first packet of a frame in to last packet out to the last receiver", &distribution},
		{"Frame(L) to the first receiver", &frame},
	} {
		lines = append(lines, claim.Information(d.name+", p50", ms(d.of.Percentile(0.5)), "ms"),
			claim.Information(d.name+", p99", ms(d.of.Percentile(0.99)), "ms"))
	}
	return append(lines, claim.Information("machine busy", 100*c.Busy, "%"))
}
