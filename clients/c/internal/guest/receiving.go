package guest

import (
	"errors"
	"time"

	"github.com/volsfu/volsfu/clients/c/internal/queue"
	"github.com/volsfu/volsfu/pkg/client"
)

// NextFrame waits for a frame, for ever where wait is negative. The frame counts as held until ReleaseFrame. The error is around queue.ErrEmpty,
// ErrTooMuchHeld, or why the session has ended.
func (g *Guest) NextFrame(wait time.Duration) (client.Frame, error) {
	frame, err := g.frames.take(wait, func(f client.Frame) int { return len(f.Data) })
	if errors.Is(err, queue.ErrEnded) {
		err = g.ended()
	}
	return frame, err
}

// ReleaseFrame says that the program does not hold a frame of so many bytes any more.
func (g *Guest) ReleaseFrame(size int) { g.frames.release(size) }

// NextEvent waits for an event, as NextFrame for a frame.
func (g *Guest) NextEvent(wait time.Duration) (Event, error) {
	event, err := g.events.take(wait, func(client.Event) int { return 0 })
	switch {
	case errors.Is(err, queue.ErrEnded):
		return Event{}, g.ended()
	case err != nil:
		return Event{}, err
	}
	return flat(event), nil
}

// ReleaseEvent says that the program does not hold an event any more.
func (g *Guest) ReleaseEvent() { g.events.release(0) }
