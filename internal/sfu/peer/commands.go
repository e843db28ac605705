package peer

import (
	"sync"

	"github.com/volsfu/volsfu/internal/transport"
)

// Command is a command of the owner to a connection: one of the types below.
type Command any

// The commands.
type (
	// SetLines sets the lines of the connection.
	SetLines struct{ Lines Lines }
	// Answer applies the client's answer to an offer. ID is the id of the client's request.
	Answer struct {
		ID    string
		Offer int
		SDP   string
	}
	// AddCandidate adds a candidate of the client. ID is the id of the client's request.
	AddCandidate struct {
		ID        string
		Candidate transport.Candidate
	}
	// RestartRemote restarts ICE of a client that offers, with the client's new credentials. ID is the id of the
	// client's request.
	RestartRemote struct{ ID, Ufrag, Password string }
	// Repeat repeats the offer of the given number, to the client that may have missed it: the owner receives
	// OfferRepeated.
	Repeat struct{ Offer int }
	// Restart restarts ICE.
	Restart struct{}
	// Close ends the connection.
	Close struct{}
)

// commandList is a queue of commands from an owner to a connection. Neither side waits. The list stays short:
// signalling limits the rate of a client's answers and candidates, and the other commands come once per change of the
// room.
type commandList struct {
	mu       sync.Mutex
	commands []Command
	notify   chan struct{}
}

func newCommandList() commandList {
	return commandList{notify: make(chan struct{}, 1)}
}

func (l *commandList) add(c Command) {
	l.mu.Lock()
	l.commands = append(l.commands, c)
	l.mu.Unlock()
	select {
	case l.notify <- struct{}{}:
	default:
	}
}

func (l *commandList) take() []Command {
	l.mu.Lock()
	defer l.mu.Unlock()
	commands := l.commands
	l.commands = nil
	return commands
}
