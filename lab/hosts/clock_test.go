package hosts

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestComparison: over ten minutes with a drift of 80 ppm and messages that wait, the offset at every instant is right
// within the bound, and the bound stays near half of the round trip.
func TestComparison(t *testing.T) {
	const (
		delay = 200 * time.Microsecond
		ahead = 50 * time.Millisecond
		drift = 80e-6
	)
	random := rand.New(rand.NewPCG(1, 2))
	begin := time.Unix(1_800_000_000, 0)
	host := func(at time.Time) time.Time {
		return at.Add(ahead + time.Duration(drift*float64(at.Sub(begin))))
	}
	wait := func() time.Duration { return delay + time.Duration(random.ExpFloat64()*float64(100*time.Microsecond)) }
	var c comparison
	if _, err := c.at(begin); err == nil {
		t.Error("an offset before the first round trip")
	}
	now := begin
	for n := range 2400 {
		received := now.Add(wait())
		answered := received.Add(20 * time.Microsecond)
		returned := answered.Add(wait())
		if err := c.answered(now, host(received), host(answered), returned); err != nil {
			t.Fatal(err)
		}
		if n < firstQuestions {
			now = now.Add(firstInterval)
		} else {
			now = now.Add(interval)
		}
	}
	for at := begin.Add(time.Second); at.Before(now); at = at.Add(777 * time.Millisecond) {
		real := host(at).Sub(at)
		for _, read := range []func() (Offset, error){
			func() (Offset, error) { return c.at(host(at)) }, func() (Offset, error) { return c.here(at) },
		} {
			got, err := read()
			if err != nil {
				t.Fatal(err)
			}
			if miss := (got.Ahead - real).Abs(); miss > got.Bound || got.Bound > 4*delay {
				t.Fatalf("after %v: ahead by %v, really %v, bound %v", at.Sub(begin), got.Ahead, real, got.Bound)
			}
		}
	}
	s := c.state()
	if s.Quickest < 0.4 || s.Quickest > 0.6 || s.Bound < 0.2 || s.Bound > 0.8 || s.Drift < 60 || s.Drift > 100 ||
		s.First < 49 || s.Last-s.First < 40 {
		t.Errorf("got %+v", s)
	}
	// The memory is bounded; old estimates become fewer.
	for len(c.estimates) < maxEstimates {
		c.estimates = append(c.estimates, c.estimates[len(c.estimates)-1])
	}
	now = now.Add(interval)
	if err := c.answered(now, host(now.Add(delay)), host(now.Add(delay)), now.Add(2*delay)); err != nil {
		t.Fatal(err)
	}
	if n := len(c.estimates); n > maxEstimates*3/4+1 || !c.estimates[n-1].at.Equal(now.Add(2*delay)) {
		t.Errorf("%d estimates, the last at %v", n, c.estimates[n-1].at)
	}
}
