package hostclock

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/frametimes"
)

var noon = time.Unix(1_800_000_000, 0)

// TestClock: the estimated offset, the configured source, and the disagreement between both.
func TestClock(t *testing.T) {
	const ahead = 40 * time.Millisecond
	exchange := func(c *Clock) {
		t.Helper()
		for i := range 20 {
			sent := noon.Add(time.Duration(i) * time.Second)
			// A server whose clock is ahead, at a distance of one millisecond.
			if err := c.Answered(c.Local(sent), sent.Add(ahead+time.Millisecond), sent.Add(ahead+time.Millisecond),
				sent.Add(2*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
		}
	}
	now := noon.Add(20 * time.Second)
	estimated := New(frametimes.SourceEstimated, 0)
	if !estimated.Asks(false) {
		t.Error("the clock is to be estimated, and the server is not asked")
	}
	if got := estimated.ToServer(now); !got.Equal(now) {
		t.Errorf("nothing is known, and %v is %v", now, got)
	}
	exchange(&estimated)
	if miss := estimated.ToServer(now).Sub(now) - ahead; miss.Abs() > 100*time.Microsecond {
		t.Errorf("the estimate is off by %v", miss)
	}
	// A transit that arrived before it left is ignored. A transit shorter than those of the answers improves the
	// estimate.
	before := estimated.State(now)
	estimated.Travelled(now.Add(ahead+480*time.Millisecond), now)
	if got := estimated.State(now); got != before {
		t.Errorf("the clock was %+v and is %+v, by a packet that cannot have been", before, got)
	}
	estimated.Travelled(now.Add(ahead-200*time.Microsecond), now)
	if got := estimated.State(now); got.Bound >= before.Bound || (got.Offset-ahead).Abs() > got.Bound {
		t.Errorf("the clock was %+v and is %+v, though a packet took no more than 200 µs", before, got)
	}
	shifted := New(frametimes.SourceEstimated, time.Minute)
	exchange(&shifted)
	state := shifted.State(now)
	if miss := shifted.ToServer(now).Sub(now) - ahead; miss.Abs() > 100*time.Microsecond {
		t.Errorf("a clock that is moved is off by %v", miss)
	}
	if miss := state.Offset - ahead + time.Minute; miss.Abs() > 100*time.Microsecond ||
		state.Bound < time.Millisecond || state.Disagreement != 0 {
		t.Errorf("the clock is %+v", state)
	}
	system := New(frametimes.SourceSystem, 0)
	if system.Asks(false) || !system.Asks(true) {
		t.Error("on one host, the server is to be asked for a check only")
	}
	exchange(&system)
	state = system.State(now)
	if state.Offset != 0 || (state.Disagreement-ahead).Abs() > 100*time.Microsecond || state.Bound < ahead ||
		!system.ToServer(now).Equal(now) {
		t.Errorf("a clock that is taken for right is %+v", state)
	}
}
