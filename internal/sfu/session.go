package sfu

import (
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

// Session is one client's place in a room over one websocket. Its methods are safe for concurrent use.
type Session struct {
	room        *Room
	participant *participant
	outbox      Outbox
}

// Handle takes a message that was read at the given time. Replies go to the outbox. It waits while the room has too much to do.
func (s *Session) Handle(m signal.Message, at time.Time) {
	s.room.post(messageRequest{participant: s.participant, outbox: s.outbox, message: m, at: at})
}

// Choose is Handle for a message of another protocol with quality choices.
func (s *Session) Choose(c Chooser, at time.Time) {
	s.room.post(chooseRequest{participant: s.participant, outbox: s.outbox, chooser: c, at: at})
}

// Detach says that the websocket has ended. The participant may resume within the grace time.
func (s *Session) Detach() {
	s.room.post(detachRequest{participant: s.participant, outbox: s.outbox})
}
