package main

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/render"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/summary"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// rendering is what the flags of drawing say.
type rendering struct {
	on    bool
	dir   string
	every int
	from  string
}

func (r *rendering) flags(f *pflag.FlagSet) {
	f.BoolVar(&r.on, "render", false, fmt.Sprintf("draw what is shown, off the screen, in pictures of %dx%d", render.Width, render.Height))
	f.StringVar(&r.dir, "render-dir", "", "folder for pictures, as PNG; draws as --render does")
	f.IntVar(&r.every, "render-every", 30, "write every so many of the pictures")
	f.StringVar(&r.from, "render-from", "", "where pictures are taken from: X,Y,Z in metres, and YAW to the left and PITCH upwards in degrees; without, along the recording of "+
		"--viewpoint, or from the front")
}

// Errors of the flags of drawing.
var (
	errView  = errors.New("expected X,Y,Z or X,Y,Z,YAW or X,Y,Z,YAW,PITCH, in metres and degrees")
	errEvery = errors.New("--render-every: expected 1 or more")
)

// open makes the screen, nil where nothing is to be drawn. now is the clock of captures.
func (r *rendering) open(now func() time.Time, log *slog.Logger) (*render.Screen, error) {
	if !r.on && r.dir == "" {
		return nil, nil
	}
	if r.every < 1 {
		return nil, fmt.Errorf("%w, got %d", errEvery, r.every)
	}
	config := render.Config{Now: now, Dir: r.dir, Every: r.every, Log: log}
	if r.from != "" {
		view, err := parseView(r.from)
		if err != nil {
			return nil, fmt.Errorf("--render-from: %w", err)
		}
		config.View = &view
	}
	screen, err := render.NewScreen(config)
	if err != nil {
		return nil, fmt.Errorf("--render-dir: %w", err)
	}
	return screen, nil
}

// follower is the screen where its pictures follow a recording, else nil.
func (r *rendering) follower(screen *render.Screen) *render.Screen {
	if r.from != "" {
		return nil
	}
	return screen
}

// parseView reads where a picture is taken from.
func parseView(text string) (render.View, error) {
	words := strings.Split(text, ",")
	if len(words) < 3 || len(words) > 5 {
		return render.View{}, fmt.Errorf("%w, got %.32q", errView, text)
	}
	var numbers [5]float64
	for i, word := range words {
		var err error
		if numbers[i], err = strconv.ParseFloat(strings.TrimSpace(word), 64); err != nil || !(math.Abs(numbers[i]) <= signal.MaxCoordinate) {
			return render.View{}, fmt.Errorf("%w, got %.32q", errView, text)
		}
	}
	// The eye is turned about the upright axis, and before that about the one to its right.
	sinYaw, cosYaw := math.Sincos(numbers[3] * math.Pi / 360)
	sinPitch, cosPitch := math.Sincos(numbers[4] * math.Pi / 360)
	return render.View{
		Position:    [3]float64(numbers[:3]),
		Orientation: [4]float64{cosYaw * sinPitch, sinYaw * cosPitch, -sinYaw * sinPitch, cosYaw * cosPitch},
	}, nil
}

// spectator looks around for the server and for the pictures.
type spectator struct {
	session onlooker
	screen  *render.Screen // nil where nothing is drawn
}

// SetViewpoint implements onlooker.
func (s spectator) SetViewpoint(v client.Viewpoint) {
	s.session.SetViewpoint(v)
	if s.screen != nil {
		s.screen.Look(render.View{Position: v.Position, Orientation: v.Orientation, FOV: v.FOV})
	}
}

// placeOf is where an object stands.
func placeOf(p *client.Pose) render.Place {
	return render.Place{Position: p.Position, Orientation: p.Orientation, Scale: p.Scale}
}

// boxOf is a box around a publication's tiles.
func boxOf(p *volumetric.Publication) (all volumetric.BoundingBox) {
	for i, tile := range p.Tiles {
		if i == 0 {
			all = tile.Box
		}
		for axis := range all.Min {
			all.Min[axis], all.Max[axis] = min(all.Min[axis], tile.Box.Min[axis]), max(all.Max[axis], tile.Box.Max[axis])
		}
	}
	return all
}

// rendered are the figures of a screen.
func rendered(s render.Stats) *summary.Render {
	return &summary.Render{
		Drawn:           s.Drawn,
		Superseded:      s.Superseded,
		Wait:            summary.PercentilesOf(&s.Wait),
		Draw:            summary.PercentilesOf(&s.Draw),
		Latency:         summary.PercentilesOf(&s.Latency),
		Pictures:        s.Written,
		PicturesDropped: s.Dropped,
	}
}
