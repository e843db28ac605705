package render

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/spf13/pflag"
)

// Flags has the flags of rendering.
type Flags struct {
	On bool
	// Dir is the folder for pictures. Every n-th picture is written, with n = Every.
	Dir   string
	Every int
	// From is the fixed view; empty if the view follows a recording.
	From string
}

// Add registers the flags.
func (r *Flags) Add(f *pflag.FlagSet) {
	f.BoolVar(&r.On, "render", false, fmt.Sprintf("render the shown frames without a display, in pictures of "+
		"%dx%d", Width,
		Height))
	f.StringVar(&r.Dir, "render-dir", "", "folder for pictures as PNG files; implies --render")
	f.IntVar(&r.Every, "render-every", 30, "write every n-th picture")
	f.StringVar(&r.From, "render-from", "", "fixed view: X,Y,Z in metres, and optionally YAW to the left and "+
		"PITCH upwards in degrees; the default is the recording of --viewpoint, or the front")
}

// Errors of the flags.
var (
	ErrView  = errors.New("expected X,Y,Z or X,Y,Z,YAW or X,Y,Z,YAW,PITCH, in metres and degrees")
	ErrEvery = errors.New("--render-every: expected 1 or more")
)

// Open returns the screen, or nil if nothing is to be drawn. now is the clock of capture times.
func (r *Flags) Open(now func() time.Time, log *slog.Logger) (*Screen, error) {
	if !r.On && r.Dir == "" {
		return nil, nil
	}
	if r.Every < 1 {
		return nil, fmt.Errorf("%w, got %d", ErrEvery, r.Every)
	}
	config := Config{Now: now, Dir: r.Dir, Every: r.Every, Log: log}
	if r.From != "" {
		view, err := ParseView(r.From)
		if err != nil {
			return nil, fmt.Errorf("--render-from: %w", err)
		}
		config.View = &view
	}
	screen, err := NewScreen(config)
	if err != nil {
		return nil, fmt.Errorf("--render-dir: %w", err)
	}
	return screen, nil
}

// Follower returns the screen if its view follows a recording, and nil otherwise.
func (r *Flags) Follower(screen *Screen) *Screen {
	if r.From != "" {
		return nil
	}
	return screen
}

// ParseView parses a view.
func ParseView(text string) (View, error) {
	numbers, err := parseNumbers(text)
	if err != nil {
		return View{}, err
	}
	return viewOf(numbers), nil
}

// viewOf returns the view at a position, turned by a yaw and a pitch in degrees.
func viewOf(numbers [5]float64) View {
	// The view is rotated by the pitch about its right axis and then by the yaw about the vertical axis.
	sinYaw, cosYaw := math.Sincos(numbers[3] * math.Pi / 360)
	sinPitch, cosPitch := math.Sincos(numbers[4] * math.Pi / 360)
	return View{
		Position:    [3]float64(numbers[:3]),
		Orientation: [4]float64{cosYaw * sinPitch, sinYaw * cosPitch, -sinYaw * sinPitch, cosYaw * cosPitch},
	}
}
