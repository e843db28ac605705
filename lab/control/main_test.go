package control

import (
	"context"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/race"
)

// short returns options for runs of a few virtual seconds.
func short(seconds float64) Options {
	o := DefaultOptions()
	o.Duration = time.Duration(seconds * float64(time.Second))
	return o
}

// run runs a case to its end.
func run(t *testing.T, text string, o Options) *Simulation {
	t.Helper()
	race.SkipSequential(t)
	s, err := NewSimulation(text, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s
}
