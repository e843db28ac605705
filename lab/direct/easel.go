package direct

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/volsfu/volsfu/internal/peer/render"
	"github.com/volsfu/volsfu/lab/direct/consumer"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// view is the current view of the pictures. It is safe for concurrent use.
type view struct {
	// fixed is set before the first use. A fixed view does not move.
	fixed bool

	mu  sync.Mutex
	now render.View
}

func (v *view) set(now render.View) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now = now
}

func (v *view) get() render.View {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// fit sets the view to a box from the front.
func (v *view) fit(box volumetric.BoundingBox) {
	v.follow(render.Fit(box, float64(render.Width)/render.Height))
}

// follow sets the view unless it is fixed.
func (v *view) follow(now render.View) {
	if !v.fixed {
		v.set(now)
	}
}

// easel draws the frames of a consumer in the decoding goroutine. A nil easel draws nothing.
type easel struct {
	rasteriser *render.Rasteriser
	gallery    *render.Gallery // nil if no pictures are written
	every      int64
	pictures   int64
	view       *view
	layers     [1]render.Layer
}

// newEasel returns an easel, or nil if nothing is to be drawn.
func newEasel(r *render.Flags, log *slog.Logger) (*easel, error) {
	if !r.On && r.Dir == "" {
		return nil, nil
	}
	if r.Every < 1 {
		return nil, fmt.Errorf("%w, got %d", render.ErrEvery, r.Every)
	}
	e := &easel{every: int64(r.Every), view: &view{}}
	if r.From != "" {
		from, err := render.ParseView(r.From)
		if err != nil {
			return nil, fmt.Errorf("--render-from: %w", err)
		}
		e.view.set(from)
		e.view.fixed = true
	}
	if r.Dir != "" {
		var err error
		if e.gallery, err = render.OpenGallery(r.Dir, log); err != nil {
			return nil, fmt.Errorf("--render-dir: %w", err)
		}
	}
	e.rasteriser = render.NewRasteriser(render.Width, render.Height, 0)
	return e, nil
}

// stage returns the easel as a consumer.Stage. A nil easel yields a nil interface.
func (e *easel) stage() consumer.Stage {
	if e == nil {
		return nil
	}
	return e
}

// Draw implements consumer.Stage.
func (e *easel) Draw(cloud *pointcloud.Cloud) {
	e.layers[0] = render.Layer{Cloud: cloud}
	e.rasteriser.Draw(e.view.get(), e.layers[:])
	if e.gallery != nil && e.pictures%e.every == 0 {
		e.gallery.Hang(e.pictures, e.rasteriser)
	}
	e.pictures++
}

func (e *easel) close() {
	if e == nil {
		return
	}
	e.rasteriser.Close()
	if e.gallery != nil {
		e.gallery.Close()
	}
}
