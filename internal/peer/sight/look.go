package sight

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
)

// Onlooker accepts viewpoints. *client.Session implements it.
type Onlooker interface {
	SetViewpoint(v client.Viewpoint)
}

// Look sets the viewpoint of an onlooker along the recording, Rate times per second, until the context ends.
func (t *Trace) Look(ctx context.Context, onlooker Onlooker) {
	ticker := time.NewTicker(time.Second / Rate)
	defer ticker.Stop()
	for begin := time.Now(); ; {
		viewpoint := t.At(time.Since(begin))
		viewpoint.At = time.Now()
		onlooker.SetViewpoint(viewpoint)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
