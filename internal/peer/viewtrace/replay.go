package viewtrace

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
)

// Viewer accepts viewpoints. *client.Session implements it.
type Viewer interface {
	SetViewpoint(v client.Viewpoint)
}

// Replay sets the viewpoint of a viewer from the recording, Rate times per second, until the context ends.
func (t *Trace) Replay(ctx context.Context, viewer Viewer) {
	ticker := time.NewTicker(time.Second / Rate)
	defer ticker.Stop()
	for begin := time.Now(); ; {
		viewpoint := t.At(time.Since(begin))
		viewpoint.At = time.Now()
		viewer.SetViewpoint(viewpoint)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
