package layers

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab/conversation"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/exposition"
)

// told returns a frame's records of receiver and sender. Every stage takes one millisecond. The sender's clock is
// ahead, and its estimate deviates by miss.
func told(frame int64, ahead, miss, bound time.Duration) (received, sent frametimes.Record) {
	captured := time.Unix(1_800_000_000, 0).Add(time.Duration(frame) * 33 * time.Millisecond)
	for _, r := range []*frametimes.Record{&received, &sent} {
		r.Frame = frame
		r.Clocks[frametimes.Sender] = frametimes.Clock{Source: frametimes.SourceEstimated, Offset: miss - ahead,
			Bound: bound}
		r.Clocks[frametimes.Server] = frametimes.Clock{Source: frametimes.SourceSystem}
		r.Clocks[frametimes.Receiver] = frametimes.Clock{Source: frametimes.SourceSystem}
	}
	for s := range frametimes.Stamp(frametimes.Stamps) {
		at := captured.Add(time.Duration(s) * time.Millisecond)
		if s.Host() == frametimes.Sender {
			received.SetLocal(s, at.Add(ahead))
			sent.SetLocal(s, at.Add(ahead))
		} else {
			received.SetLocal(s, at)
		}
	}
	return received, sent
}

func TestCompare(t *testing.T) {
	const ahead, bound = 50 * time.Millisecond, 300 * time.Microsecond
	var records []frametimes.Record
	captures := make(map[frametimes.Key]frametimes.Record)
	for i, miss := range []time.Duration{0, 100 * time.Microsecond, -200 * time.Microsecond, 400 * time.Microsecond} {
		r, own := told(int64(i), ahead, miss, bound)
		records = append(records, r)
		captures[frametimes.Key{Track: r.Track, Frame: uint32(i)}] = own
	}
	unknown, _ := told(90, ahead, 0, bound)
	unfinished, _ := told(91, ahead, 0, bound)
	unfinished.Times[frametimes.Shown], unfinished.Times[frametimes.Decoded] = 0, 0
	torn, own := told(92, ahead, 0, bound)
	torn.Times[frametimes.ServerFirstOut] = 0
	captures[frametimes.Key{Track: torn.Track, Frame: 92}] = own
	c := compare(append(records, unknown, unfinished, torn), captures, ahead, 0)
	if c.frames != 6 || c.complete != 4 || c.unknown != 1 || c.outside != 1 {
		t.Errorf("%d frames, %d complete, %d unknown, %d outside; expected 6, 4, 1, 1", c.frames, c.complete, c.unknown,
			c.outside)
	}
	latency := time.Duration(frametimes.Shown) * time.Millisecond
	if got := c.real.Max(); got != latency {
		t.Errorf("the latency is %v, expected %v", got, latency)
	}
	if got := c.misses.Max(); got != 400*time.Microsecond {
		t.Errorf("the layers deviate by %v, expected 400 µs", got)
	}
	lines := c.lines("here")
	for name, met := range map[string]bool{
		"here: frames with every stage":                                             false,
		"here: deviation of the sum of the layers from the latency, 99 % of frames": false,
		"here: frames with a deviation above the reported bound":                    false,
	} {
		i := slices.IndexFunc(lines, func(l claim.Line) bool { return l.Name == name && l.Target != "" })
		if i < 0 || lines[i].Met != met {
			t.Errorf("%s: lines are %v, expected one line that is met: %v", name, lines, met)
		}
	}
	if none := (&comparison{}).lines("here"); len(none) != 1 || none[0].Met {
		t.Errorf("an empty comparison has %v, expected a missed target", none)
	}
}

// TestUncertainty: the uncertainty of each clock is judged separately, and frames with a larger deviation are counted.
func TestUncertainty(t *testing.T) {
	var records []frametimes.Record
	captures := make(map[frametimes.Key]frametimes.Record)
	for i := range int64(3) {
		r, own := told(i, 50*time.Millisecond, time.Duration(i)*60*time.Microsecond, time.Millisecond)
		r.Clocks[frametimes.Sender].Uncertainty, r.Clocks[frametimes.Receiver].Uncertainty = 40*time.Microsecond,
			time.Duration(50+50*i)*time.Microsecond
		records = append(records, r)
		captures[frametimes.Key{Track: r.Track, Frame: uint32(i)}] = own
	}
	records[2].Clocks[frametimes.Receiver].Uncertainty = 70 * time.Microsecond
	c := compare(records, captures, 50*time.Millisecond, 0)
	if c.uncertain != 1 || c.outside != 0 {
		t.Errorf("%d frames deviate by more than the uncertainty and %d by more than the bound, expected 1 and none",
			c.uncertain, c.outside)
	}
	if lines := c.clockLines("here"); len(lines) != 4 || lines[0].Figure != 40 || lines[2].Figure != 70 ||
		lines[0].Missed() || lines[2].Missed() {
		t.Errorf("lines are %v, expected clocks of 40 and 70 µs", lines)
	}
	c.clocks[frametimes.Receiver].Add(time.Millisecond, time.Millisecond, time.Millisecond, time.Millisecond)
	if lines := c.clockLines("here"); lines[0].Missed() || !lines[2].Missed() {
		t.Errorf("lines are %v, expected that the line of the receiver's clock misses its target", lines)
	}
	if lines := (&comparison{}).clockLines("here"); len(lines) != 0 {
		t.Errorf("an empty comparison has %v", lines)
	}
}

// TestCompareExactly: with known clocks, the sum of the layers equals the latency.
func TestCompareExactly(t *testing.T) {
	r, own := told(7, time.Hour, 0, 0)
	c := compare([]frametimes.Record{r}, map[frametimes.Key]frametimes.Record{{Frame: 7}: own}, time.Hour, 0)
	for _, l := range c.lines("here") {
		if l.Missed() {
			t.Error(l.String())
		}
	}
	if c.misses.Max() != 0 {
		t.Errorf("deviation of %v", c.misses.Max())
	}
}

func TestSettled(t *testing.T) {
	var records []frametimes.Record
	for i := range 100 {
		r, _ := told(int64(i), 0, 0, 0)
		records = append(records, r)
	}
	kept := settled(records)
	if len(kept) == 0 || kept[0].Frame != 31 || kept[len(kept)-1].Frame != 68 {
		t.Errorf("%d records are left, expected all but those of the first and last second", len(kept))
	}
}

// TestStayedLines: residence is the server's histogram. hold and Frame(L) belong to the first receiver, and the
// distribution covers all receivers.
func TestStayedLines(t *testing.T) {
	c := &conversation.Conversation{
		Due: 4, Sent: 4, Others: []int{3}, Busy: 0.5, Residence: []exposition.Bucket{{Bound: 2 * time.Millisecond,
			Count: 10}},
		Distributions: []conversation.Distribution{{Frame: 0, Time: 20 * time.Millisecond},
			{Frame: 1, Time: 25 * time.Millisecond}},
	}
	for i := range int64(4) {
		r, _ := told(i, 0, 0, 0)
		c.Records = append(c.Records, r)
	}
	if got := share(c); got != 87.5 {
		t.Errorf("%g %% arrived, expected 7 of 8", got)
	}
	if share(nil) != 0 || share(&conversation.Conversation{}) != 0 {
		t.Error("a share is reported without sent frames")
	}
	lines := stayed(c, 30)
	for name, want := range map[string]float64{
		"content to the server": 932.736, "without the pacer's hold, p50": 1,
		"first packet out, p50": float64(frametimes.ServerFirstOut - frametimes.ServerFirstIn),
		"last receiver, p50":    20, "last receiver, p99": 25,
		"Frame(L) to the first receiver, p99": float64(frametimes.LastReceived - frametimes.FirstSent),
	} {
		i := slices.IndexFunc(lines, func(l claim.Line) bool { return strings.Contains(l.Name, name) })
		if i < 0 || math.Abs(lines[i].Figure-want) > 1e-6 {
			t.Errorf("%s: lines are %v, expected one line of %g", name, lines, want)
		}
	}
}
