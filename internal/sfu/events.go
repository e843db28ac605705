package sfu

import (
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/pkg/webhook"
)

// Events receives the events of rooms.
type Events interface {
	// RoomEvent receives an event, which has no id yet. The events of one room come in their order. RoomEvent is called
	// by the goroutines of rooms and with the mutex of the node: RoomEvent must neither wait nor call the node.
	RoomEvent(webhook.Event)
}

// roomEvents emits the events of one room.
type roomEvents struct {
	// receiver is nil if no program receives events.
	receiver Events
	// room has the name of the room and the id of its present life, from its start to its end.
	room webhook.Room
	// begun is set from the event of the room's start to that of its end, emitted counts the room's events. Both are
	// safe for concurrent use.
	begun   atomic.Bool
	emitted atomic.Uint64
}

// Name returns the name of the room.
func (r *roomEvents) Name() string { return r.room.Name }

// emit passes an event of the room on. The events RoomStarted and RoomEnded are emitted by Begin and End.
func (r *roomEvents) emit(e webhook.Event) {
	if r.receiver == nil {
		return
	}
	e.Room, e.Sequence, e.At = r.room, r.emitted.Add(1), time.Now()
	r.receiver.RoomEvent(e)
}

// Begin emits the start of the room once. A room that a join opens starts when the join is accepted.
func (r *roomEvents) Begin() {
	if r.begun.CompareAndSwap(false, true) {
		r.emit(webhook.Event{Kind: webhook.RoomStarted})
	}
}

// End emits the end of the room once, if the room has started. No event of the room may follow.
func (r *roomEvents) End() {
	if r.begun.CompareAndSwap(true, false) {
		r.emit(webhook.Event{Kind: webhook.RoomEnded})
	}
}

// event returns an event of the participant.
func (p *participant) event(kind webhook.Kind) webhook.Event {
	return webhook.Event{Kind: kind, Participant: &webhook.Participant{Identity: p.Identity, TokenID: p.token.ID}}
}

// movedReason is the reason of a departure by a move. Each node has a room of its own, with its own events.
const movedReason = "moved to another server"

// emitJoined emits the arrival of a participant, with the publications that it brings from another node.
func (r *roomEvents) emitJoined(p *participant) {
	r.emit(p.event(webhook.ParticipantJoined))
	for _, publication := range p.Publications {
		r.emitPublication(p, publication, webhook.Published)
	}
}

// emitMoved emits the end of a participant's publications on this node and its departure to another node.
func (r *roomEvents) emitMoved(p *participant) {
	for _, publication := range p.Publications {
		r.emitPublication(p, publication, webhook.Unpublished)
	}
	left := p.event(webhook.ParticipantLeft)
	left.Reason = movedReason
	r.emit(left)
}

// emitPublication emits an event of a publication, unless others do not know the publication.
func (r *roomEvents) emitPublication(owner *participant, p *presence.Publication, kind webhook.Kind) {
	if p.Silent {
		return
	}
	e, d := owner.event(kind), &p.Description
	e.Publication = &webhook.Publication{
		Name: d.Name, Kind: string(d.Kind), Codec: d.Codec.MIMEType, Tiles: len(d.Tiles), Qualities: len(d.Qualities),
	}
	r.emit(e)
}
