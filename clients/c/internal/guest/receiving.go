package guest

import (
	"errors"
	"time"

	"github.com/volsfu/volsfu/clients/c/internal/queue"
	"github.com/volsfu/volsfu/pkg/client"
)

// NextFrame waits for a frame, without limit if wait is negative. The frame counts as held until
// ReleaseFrame. The error wraps queue.ErrEmpty, ErrTooMuchHeld, or the reason for the end of the
// session.
func (g *Guest) NextFrame(wait time.Duration) (client.Frame, error) {
	frame, err := g.frames.take(wait, func(f client.Frame) int { return len(f.Data) })
	if errors.Is(err, queue.ErrEnded) {
		err = g.ended()
	}
	return frame, err
}

// ReleaseFrame records that the program has released a frame of the given size.
func (g *Guest) ReleaseFrame(size int) { g.frames.release(size) }

// NextEvent waits for an event, as NextFrame does for a frame.
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

// ReleaseEvent records that the program has released an event.
func (g *Guest) ReleaseEvent() { g.events.release(0) }
