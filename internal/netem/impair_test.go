package netem_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
)

// TestImpairLeavesTheTrace changes the delay while the rate follows a trace of 1 and 2 Mbit/s. A packet of 1,250 bytes
// takes 10 and 5 ms.
func TestImpairLeavesTheTrace(t *testing.T) {
	cfg := netem.DefaultConfig()
	link := newLink(t, cfg, 1)
	trace := netem.RateTrace{Steps: []netem.RateStep{{At: 0, RateBPS: 1_000_000},
		{At: 100 * time.Millisecond, RateBPS: 2_000_000}}, Duration: second}
	setRate(t, link, trace, epoch)
	cfg.Delay, cfg.RateBPS = 30*time.Millisecond, 77
	if err := link.Impair(cfg, at(50*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	link.Send(&netem.Packet{Flow: 1, Size: 1250}, at(60*time.Millisecond))
	link.Send(&netem.Packet{Flow: 2, Size: 1250}, at(200*time.Millisecond))
	expected := []arrival{{1, 100 * time.Millisecond}, {2, 235 * time.Millisecond}}
	if got := drain(link); !slices.Equal(got, expected) {
		t.Errorf("%v, expected %v", got, expected)
	}
	cfg.QueueDelay = 0
	if err := link.Impair(cfg, at(second)); !errors.Is(err, netem.ErrConfig) {
		t.Errorf("%v, expected ErrConfig for a queue without limit", err)
	}
	cfg.Loss = 2
	if err := newLink(t, netem.Config{}, 1).Impair(cfg, epoch); !errors.Is(err, netem.ErrConfig) {
		t.Errorf("%v, expected ErrConfig for a loss of 2", err)
	}
}

// TestImpairLeavesTheRate does the same with a constant rate.
func TestImpairLeavesTheRate(t *testing.T) {
	link := newLink(t, with(func(c *netem.Config) { c.RateBPS = 1_000_000 }), 1)
	if err := link.Impair(netem.Config{Delay: time.Millisecond, QueueDelay: second}, epoch); err != nil {
		t.Fatal(err)
	}
	expected := []arrival{{0, 11 * time.Millisecond}, {1, 21 * time.Millisecond}}
	if got := run(link, 2, 1250, us); !slices.Equal(got, expected) {
		t.Errorf("%v, expected %v", got, expected)
	}
}

func TestResetStats(t *testing.T) {
	link := newLink(t, with(func(c *netem.Config) { c.Delay, c.JitterReorders = time.Millisecond, true }), 1)
	run(link, 3, 100, us)
	link.ResetStats()
	if s := link.Stats(); s != (netem.Stats{}) {
		t.Errorf("%+v, expected zeros", s)
	}
	// The order of packets is tracked: later packets do not count as earlier ones that were overtaken.
	link.Send(&netem.Packet{Size: 100}, at(second))
	link.Deliver(at(2 * second))
	if s := link.Stats(); s.Sent != 1 || s.Delivered != 1 || s.Reordered != 0 {
		t.Errorf("%+v, expected one packet in order", s)
	}
}

// TestMarkedCounts overloads a marking queue: the link counts packets marked there, not packets that were marked
// before.
func TestMarkedCounts(t *testing.T) {
	link := newLink(t, with(func(c *netem.Config) {
		c.RateBPS, c.Queue, c.QueueDelay = 10_000_000, netem.QueueCoDel,
			second
	}), 1)
	came, marked := 0, 0
	for i := range 3000 {
		codepoint := ecn.ECT0
		if i%10 == 0 {
			codepoint, came = ecn.CE, came+1
		}
		link.Send(&netem.Packet{Size: 1250, ECN: codepoint}, at(time.Duration(i)*900*us))
	}
	for _, p := range link.Deliver(at(time.Hour)) {
		if p.ECN == ecn.CE {
			marked++
		}
	}
	if s := link.Stats(); s.Marked == 0 || marked < came+int(s.Marked) || marked > came+int(s.Marked) {
		t.Errorf("%d counted, %d were already marked and %d arrived marked, expected the sum", s.Marked, came, marked)
	}
}

func TestBusy(t *testing.T) {
	link := newLink(t, with(func(c *netem.Config) { c.RateBPS = 1_000_000 }), 1)
	if link.Busy(epoch) {
		t.Error("busy before the first packet")
	}
	link.Send(&netem.Packet{Size: 1250}, epoch)
	if !link.Busy(at(9*time.Millisecond)) || link.Busy(at(10*time.Millisecond)) {
		t.Error("expected it to be busy for 10 ms")
	}
	if link = newLink(t, netem.Config{}, 1); link.Busy(epoch) {
		t.Error("a link without a rate is busy")
	}
}
