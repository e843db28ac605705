package transport

import (
	"sync"

	"github.com/pion/ice/v4"
)

// State is the state of a peer connection.
type State int

// The states of a peer connection. StateNone is the state in an event about a candidate.
const (
	StateNone State = iota
	StateConnected
	StateDisconnected
	StateFailed
	StateClosed
)

// Candidate is a local or remote ICE candidate in the form of signalling messages.
type Candidate struct {
	Candidate string
	MID       string
	LineIndex int
}

// Event is a change of a peer connection: a new state, or a local candidate for the remote peer.
type Event struct {
	State State
	// Final is set if the connection has failed for good, because a goroutine of the peer panicked.
	Final     bool
	Candidate *Candidate
}

// eventList holds events until the peer's owner reads them. The list is short: a peer has a few candidates and states.
type eventList struct {
	mu     sync.Mutex
	events []Event
	notify chan struct{}

	// ice is the agent's state. secure is set after the handshake. state is the last state reported. broken is set if
	// the connection has failed for good.
	ice    ice.ConnectionState
	secure bool
	state  State
	broken bool
}

func newEventList() *eventList {
	return &eventList{notify: make(chan struct{}, 1)}
}

func (l *eventList) add(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.append(e)
}

// append adds an event. The caller of append, settle and report holds the mutex.
func (l *eventList) append(e Event) {
	l.events = append(l.events, e)
	select {
	case l.notify <- struct{}{}:
	default:
	}
}

func (l *eventList) take() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.events
	l.events = nil
	return events
}

// iceState sets the state of ICE.
func (l *eventList) iceState(state ice.ConnectionState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ice = state
	l.settle()
}

// secured records the end of the handshake.
func (l *eventList) secured() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.secure = true
	l.settle()
}

// enter reports a state that does not come from ICE.
func (l *eventList) enter(state State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.report(state)
}

// fail reports that the connection has failed for good. ICE may restart, but the connection does not recover.
func (l *eventList) fail() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken || l.state == StateClosed {
		return
	}
	l.broken, l.state = true, StateFailed
	l.append(Event{State: StateFailed, Final: true})
}

// settle derives the connection's state (W3C WebRTC, RTCPeerConnectionState) from the states of ICE and DTLS.
func (l *eventList) settle() {
	switch l.ice {
	case ice.ConnectionStateChecking:
		if l.state == StateFailed {
			// ICE restarts, and may fail again.
			l.state = StateNone
		}
	case ice.ConnectionStateConnected, ice.ConnectionStateCompleted:
		if l.secure {
			l.report(StateConnected)
		}
	case ice.ConnectionStateDisconnected:
		l.report(StateDisconnected)
	case ice.ConnectionStateFailed:
		l.report(StateFailed)
	case ice.ConnectionStateClosed:
		l.report(StateClosed)
	}
}

// report adds an event if the state is new. No event follows StateClosed. After a final failure only StateClosed is
// reported.
func (l *eventList) report(state State) {
	if state == l.state || l.state == StateClosed || l.broken && state != StateClosed {
		return
	}
	l.state = state
	l.append(Event{State: state})
}
