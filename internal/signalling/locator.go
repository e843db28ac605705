package signalling

import (
	"time"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/signal"
)

// Locator finds the node that has a room.
type Locator interface {
	// Locate returns the node that handles a join: the node of the room or, if the join resumes a session, the node of
	// the session. If no node has the room, the room begins on the node that Locate returns.
	Locate(q *sfu.JoinRequest) Node
}

// Node adds clients to its rooms. The methods are safe for concurrent use.
type Node interface {
	// Join adds a client to a room or resumes its session. If there is no error, the reply is in the outbox when Join
	// returns. The text of an error is sent to the client.
	Join(q sfu.JoinRequest) (Session, *signal.Error)
}

// Session is one client's place in a room over one websocket. The methods are safe for concurrent use.
type Session interface {
	// Handle handles a message that was read at the given time. Replies are sent to the outbox. Handle blocks while the
	// queue of the room is full.
	Handle(m signal.Message, at time.Time)
	// Choose handles quality choices of another protocol in the same way.
	Choose(c sfu.Chooser, at time.Time)
	// Detach reports that the websocket has ended. The participant may resume within the grace time.
	Detach()
}
