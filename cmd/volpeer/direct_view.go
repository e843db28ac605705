package main

import (
	"sync"

	"github.com/volsfu/volsfu/internal/peer/render"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// view is where pictures are taken from. It is safe for concurrent use.
type view struct {
	// fixed is set before anybody looks: then nothing else moves it.
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

// fit looks at a box from the front.
func (v *view) fit(box volumetric.BoundingBox) {
	v.follow(render.Fit(box, float64(render.Width)/render.Height))
}

// follow moves with somebody.
func (v *view) follow(now render.View) {
	if !v.fixed {
		v.set(now)
	}
}
