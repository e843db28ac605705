package transport

import (
	"sync"

	"github.com/pion/webrtc/v4"
)

// State is what becomes of a peer connection.
type State int

// The states of a peer connection. StateNone stands in events that are not about the state.
const (
	StateNone State = iota
	StateConnected
	StateDisconnected
	StateFailed
	StateClosed
)

// Candidate is a local or remote ICE candidate in the form that signalling carries.
type Candidate struct {
	Candidate string
	MID       string
	LineIndex int
}

// Event is one thing that happened to a peer connection: a new state, or a local candidate to send to the remote peer.
type Event struct {
	State     State
	Candidate *Candidate
}

// eventList keeps what happened until the peer's owner takes it. It is short: a peer has a few candidates and states.
type eventList struct {
	mu     sync.Mutex
	events []Event
	notify chan struct{}
}

func newEventList() *eventList {
	return &eventList{notify: make(chan struct{}, 1)}
}

func (l *eventList) add(e Event) {
	l.mu.Lock()
	l.events = append(l.events, e)
	l.mu.Unlock()
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

func (l *eventList) addCandidate(c *webrtc.ICECandidate) {
	if c == nil {
		return
	}
	init := c.ToJSON()
	candidate := Candidate{Candidate: init.Candidate}
	if init.SDPMid != nil {
		candidate.MID = *init.SDPMid
	}
	if init.SDPMLineIndex != nil {
		candidate.LineIndex = int(*init.SDPMLineIndex)
	}
	l.add(Event{Candidate: &candidate})
}

func (l *eventList) addState(s webrtc.PeerConnectionState) {
	states := map[webrtc.PeerConnectionState]State{
		webrtc.PeerConnectionStateConnected:    StateConnected,
		webrtc.PeerConnectionStateDisconnected: StateDisconnected,
		webrtc.PeerConnectionStateFailed:       StateFailed,
		webrtc.PeerConnectionStateClosed:       StateClosed,
	}
	if state, ok := states[s]; ok {
		l.add(Event{State: state})
	}
}
