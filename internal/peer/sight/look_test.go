package sight

import (
	"context"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/client"
)

// gaze receives viewpoints.
type gaze chan client.Viewpoint

func (g gaze) SetViewpoint(v client.Viewpoint) { g <- v }

func TestLookingAround(t *testing.T) {
	text := "HMDPX,HMDPY,HMDPZ,HMDRX,HMDRY,HMDRZ\n1,1.6,-2,0,0,0\n2,1.6,-2,0,0,0\n3,1.6,-2,0,0,0\n"
	trace, err := Read(strings.NewReader(text), "")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(gaze)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		trace.Look(ctx, seen)
	}()
	first := <-seen
	if first.Position != [3]float64{1, 1.6, 2} || first.At.IsZero() {
		t.Errorf("begins at %+v", first)
	}
	// The viewpoint moves on, and starts again, even if ticks are late.
	moved := false
	for range 10 {
		v := <-seen
		moved = moved || v.Position != first.Position
		if v.At.Before(first.At) {
			t.Errorf("%v comes after %v", v.At, first.At)
		}
	}
	if !moved {
		t.Error("does not move")
	}
	cancel()
	select {
	case <-seen:
		<-ended
	case <-ended:
	}
}
