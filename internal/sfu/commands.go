package sfu

import (
	"sync"

	"github.com/volsfu/volsfu/internal/transport"
)

// command is something that the room tells a connection.
type command any

type (
	// linesCommand says which lines the connection shall have.
	linesCommand struct{ wanted wantedLines }
	// answerCommand brings the client's answer.
	answerCommand struct {
		id    string
		offer int
		sdp   string
	}
	// candidateCommand brings a candidate of the client's.
	candidateCommand struct {
		id        string
		candidate transport.Candidate
	}
	// restartCommand starts ICE anew.
	restartCommand struct{}
	// closeCommand ends the connection.
	closeCommand struct{}
)

// commandList carries commands from a room to a connection without either waiting. It stays short: a client's answers and candidates are
// limited by signalling's rate, the rest comes once per change of the room.
type commandList struct {
	mu       sync.Mutex
	commands []command
	notify   chan struct{}
}

func newCommandList() *commandList {
	return &commandList{notify: make(chan struct{}, 1)}
}

func (l *commandList) add(c command) {
	l.mu.Lock()
	l.commands = append(l.commands, c)
	l.mu.Unlock()
	select {
	case l.notify <- struct{}{}:
	default:
	}
}

func (l *commandList) take() []command {
	l.mu.Lock()
	defer l.mu.Unlock()
	commands := l.commands
	l.commands = nil
	return commands
}
