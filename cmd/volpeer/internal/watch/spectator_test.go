package watch

import (
	"errors"
	"log/slog"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/choice"
	"github.com/volsfu/volsfu/internal/peer/render"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

func TestViews(t *testing.T) {
	half := math.Sqrt(0.5)
	for text, want := range map[string]render.View{
		"1,0,-2":          {Position: [3]float64{1, 0, -2}, Orientation: [4]float64{0, 0, 0, 1}},
		"0, 1.6, 3, 90":   {Position: [3]float64{0, 1.6, 3}, Orientation: [4]float64{0, half, 0, half}},
		"0,1.6,3,0,-90":   {Position: [3]float64{0, 1.6, 3}, Orientation: [4]float64{-half, 0, 0, half}},
		"0,1.6,3,-90,90":  {Position: [3]float64{0, 1.6, 3}, Orientation: [4]float64{0.5, -0.5, 0.5, 0.5}},
		"0,1.6,3,360,0.0": {Position: [3]float64{0, 1.6, 3}, Orientation: [4]float64{0, 0, 0, -1}},
	} {
		got, err := render.ParseView(text)
		if err != nil || got.Position != want.Position {
			t.Errorf("%q: got %+v, %v; want %+v", text, got, err, want)
		}
		for i := range want.Orientation {
			if math.Abs(got.Orientation[i]-want.Orientation[i]) > 1e-9 {
				t.Errorf("%q: turned %v, want %v", text, got.Orientation, want.Orientation)
				break
			}
		}
	}
	for _, text := range []string{"", "1,2", "1,2,3,4,5,6", "1,two,3", "1,NaN,3", "1,2,1e9", "Inf,0,0"} {
		if _, err := render.ParseView(text); !errors.Is(err, render.ErrView) {
			t.Errorf("%q: got %v, want an error around %v", text, err, render.ErrView)
		}
	}
}

// TestRendering checks that shown frames are drawn, and that the summary has the times.
func TestRendering(t *testing.T) {
	dir := t.TempDir()
	session := newFakeSession()
	flags := render.Flags{Dir: dir, Every: 1, From: "0,0,2"}
	th := open(t, viewerConfig{wish: choice.Auto}, session, func(v *viewer) {
		var err error
		if v.screen, err = flags.Open(v.now, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
	})
	session.setParticipants(alice(volumetric.ModeAlternatives))
	session.events <- client.Published{Participant: "alice"}
	session.events <- client.PoseChanged{Publication: volumetric.PublicationRef{Participant: "alice",
		Publication: "body"}, Pose: client.Pose{Position: [3]float64{1, 0, 0}}}
	for tile := range 2 {
		th.frame(tile, 0, 1, 40*time.Millisecond)
	}
	wait.Until(t, "a picture", func() bool { return th.viewer.screen.Stats().Written > 0 })
	if err := th.close(); err != nil {
		t.Fatal(err)
	}
	sum := th.viewer.sum()
	if r := sum.Render; r == nil || r.Drawn == 0 || r.Wait.P50 == nil || r.Draw.P50 == nil || r.Latency.P50 == nil ||
		r.Pictures == 0 {
		t.Fatalf("got %+v", sum.Render)
	}
	if *sum.Render.Latency.P50 < *sum.Latency.P50 {
		t.Errorf("shown after %g ms, before it was decoded after %g ms", *sum.Render.Latency.P50, *sum.Latency.P50)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "*.png")); err != nil || len(files) == 0 {
		t.Errorf("no pictures: %v, %v", files, err)
	}
}

func TestSpectator(t *testing.T) {
	screen, err := (&render.Flags{On: true, Every: 1}).Open(time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	seen := make(viewpoints, 1)
	spectator{seen, screen}.SetViewpoint(client.Viewpoint{Position: [3]float64{1, 2, 3}})
	if v := <-seen; v.Position != [3]float64{1, 2, 3} {
		t.Errorf("the server is told %v", v.Position)
	}
	if (&render.Flags{From: "1,2,3"}).Follower(screen) != nil || (&render.Flags{}).Follower(screen) != screen {
		t.Error("expected pictures to follow the recording unless they are taken from elsewhere")
	}
	if none, err := (&render.Flags{Every: 1}).Open(time.Now, nil); none != nil || err != nil {
		t.Errorf("expected nothing to be drawn, got %v, %v", none, err)
	}
}

// viewpoints receives viewpoints.
type viewpoints chan client.Viewpoint

func (v viewpoints) SetViewpoint(viewpoint client.Viewpoint) { v <- viewpoint }
