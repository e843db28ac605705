package summary

import (
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/frametimes"
)

func TestLayersTable(t *testing.T) {
	if text := (*Layers)(nil).Table() + (&Layers{}).Table(); text != "" {
		t.Errorf("nothing measured gives %q", text)
	}
	var book LayerBook
	r := frametimes.Record{}
	r.Clocks[frametimes.Sender] = frametimes.Clock{Source: frametimes.SourceEstimated, Offset: 50 * time.Millisecond,
		Bound: 300 * time.Microsecond, Uncertainty: 20 * time.Microsecond}
	r.Clocks[frametimes.Receiver] = frametimes.Clock{
		Source: frametimes.SourceSystem, Bound: 2 * time.Millisecond, Uncertainty: 1100 * time.Microsecond,
		Disagreement: time.Millisecond,
	}
	for s := range frametimes.Stamp(frametimes.Stamps) {
		if s != frametimes.FirstSentHardware && s != frametimes.ServerFirstInHardware &&
			s != frametimes.ServerFirstOutHardware && s != frametimes.FirstReceivedHardware {
			r.Set(s, time.Unix(1_800_000_000, 0).Add(time.Duration(s)*time.Millisecond))
		}
	}
	layers := r.Layers()
	book.Add(&r, &layers)
	text := book.Sum().Table()
	for _, want := range []string{
		"layers of 1 tile frames, 1 of them with every stage", "service                   28.000",
		"50000 µs added, ± 300 µs at most, ± 20 µs if the path is symmetric",
		"± at most ± symmetric", "28.000     2.300       1.120\n", "7.000     0.300       0.020\n",
		"1.000     0.000       0.000\n",
		"clock of the receiver: system, but the estimate finds it -1000 µs off, ± 1000 µs",
		"stamps of network cards: absent",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	r.Times[frametimes.FirstSentKernel], r.Times[frametimes.ServerFirstInKernel],
		r.Times[frametimes.ServerFirstOutKernel], r.Times[frametimes.FirstReceivedKernel] = 0, 0, 0, 0
	layers = r.Layers()
	var bare LayerBook
	bare.Add(&r, &layers)
	if text := bare.Sum().Table(); !strings.Contains(text, "stamps of kernels and network cards: absent") {
		t.Errorf("no word of absent stamps in\n%s", text)
	}
}
