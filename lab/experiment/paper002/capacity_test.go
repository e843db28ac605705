package paper002

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/probe"
)

func TestCapacityParameters(t *testing.T) {
	if err := defaultCapacity().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*capacity){
		"protocol": func(p *capacity) { p.Protocol = "sctp" }, "offered": func(p *capacity) { p.Offered = 0 },
		"size": func(p *capacity) { p.Size = 9000 }, "interval": func(p *capacity) { p.Interval = 0 },
		"link": func(p *capacity) { p.Link = "rate=fast" }, "back": func(p *capacity) { p.Back = "delay" },
	} {
		p := defaultCapacity()
		change(&p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestMeasurePassages has packets of 10, 12 and 14 ms, one without a stamp, and a lost one.
func TestMeasurePassages(t *testing.T) {
	o := experiment.NewOutcome()
	measurePassages(o, 5, []probe.Passage{{Total: 10e6}, {Total: 12e6}, {Total: 14e6}, {Total: probe.Missing}})
	for figure, want := range map[string]float64{"latency": 12, "latency_deviation": math.Sqrt(8.0 / 3), "lost": 20} {
		if got, ok := o.Figure(figure); !ok || math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: expected %g, got %g", figure, want, got)
		}
	}
	o = experiment.NewOutcome()
	if measurePassages(o, 5, nil); o.Validity != experiment.Invalid {
		t.Errorf("without arrivals: %s", o.Validity)
	}
}

func TestLost(t *testing.T) {
	if got := lost(&netem.Stats{Sent: 100, DroppedQueue: 40}, &netem.Stats{Sent: 300, DroppedQueue: 50}); got != 5 {
		t.Errorf("expected 10 of 200 packets, got %g %%", got)
	}
	if got := lost(&netem.Stats{Sent: 1}, &netem.Stats{Sent: 1}); got != 0 {
		t.Errorf("without packets: expected 0, got %g %%", got)
	}
}

func TestContent(t *testing.T) {
	earlier := netem.Stats{Delivered: 10, DeliveredBytes: 15_000}
	later := netem.Stats{Delivered: 20, DeliveredBytes: 30_000}
	for protocol, want := range map[string]uint64{protocolUDP: 14_720, protocolTCP: 14_480} {
		p := capacity{Protocol: protocol}
		if got := p.content(&earlier, &later); got != want {
			t.Errorf("%s: expected %d bytes, got %d", protocol, want, got)
		}
	}
}

// TestTransfers measures a link of 8 Mbit/s with both protocols for a second.
func TestTransfers(t *testing.T) {
	for _, protocol := range []string{protocolUDP, protocolTCP} {
		p := defaultCapacity()
		p.Protocol, p.Offered, p.Link, p.Back = protocol, 16, "rate=8Mbit,delay=2ms,queue=64kB", "delay=2ms"
		o, err := runCapacity(t.Context(), p, experiment.Settings{Duration: time.Second, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if o.Validity == experiment.Skipped {
			t.Skip(o.Reason)
		}
		// The headers of 28 of 1,428 bytes and of 52 of 1,500 bytes do not count.
		if got, ok := o.Figure("throughput"); !ok || got < 0.7 || got > 1 {
			t.Errorf("%s: expected some 0.97 MB/s, got %g", protocol, got)
		} else {
			t.Logf("%s: %g MB/s", protocol, got)
		}
		if share, ok := o.Figure("lost"); !ok || protocol == protocolUDP && (share < 35 || share > 65) {
			t.Errorf("%s: expected half of UDP's packets to be dropped, got %g %%", protocol, share)
		}
	}
}
