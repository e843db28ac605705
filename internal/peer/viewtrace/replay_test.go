package viewtrace

import (
	"context"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/client"
)

// gaze passes viewpoints to the test.
type gaze chan client.Viewpoint

func (g gaze) SetViewpoint(v client.Viewpoint) { g <- v }

func TestReplay(t *testing.T) {
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
		trace.Replay(ctx, seen)
	}()
	first := <-seen
	if first.Position != [3]float64{1, 1.6, 2} || first.At.IsZero() {
		t.Errorf("the first viewpoint is %+v", first)
	}
	// However late the ticks are, the viewpoint moves, and the recording is repeated.
	moved := false
	for range 10 {
		v := <-seen
		moved = moved || v.Position != first.Position
		if v.At.Before(first.At) {
			t.Errorf("%v follows %v", v.At, first.At)
		}
	}
	if !moved {
		t.Error("the viewpoint does not move")
	}
	cancel()
	select {
	case <-seen:
		<-ended
	case <-ended:
	}
}
