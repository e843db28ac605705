package signalling

import (
	"time"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/signal"
)

// Locator finds the node that has a room.
type Locator interface {
	// Locate returns the node that takes a join: the node that has the room or, for a join that resumes, the session.
	// If no node has the room, the room begins on the node that Locate returns.
	Locate(q *sfu.JoinRequest) Node
}

// Node takes clients into its rooms. Its methods are safe for concurrent use.
type Node interface {
	// Join brings a client into a room, or back into its session. If there is no error, the reply is in the outbox when
	// Join returns. The text of an error is told to the client.
	Join(q sfu.JoinRequest) (Session, *signal.Error)
}

// Session is one client's place in a room over one websocket. Its methods are safe for concurrent use.
type Session interface {
	// Handle takes a message that was read at the given time. Replies go to the outbox. Handle waits while the room has
	// too much to do.
	Handle(m signal.Message, at time.Time)
	// Choose is Handle for a message of another protocol with quality choices.
	Choose(c sfu.Chooser, at time.Time)
	// Detach reports that the websocket has ended. The participant may resume within the grace time.
	Detach()
}
