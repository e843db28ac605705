package cluster

import (
	"errors"
	"fmt"
	"time"
)

// Errors of local writes.
var (
	ErrRoom   = errors.New("the node has not entered the room")
	ErrRooms  = errors.New("the node has the maximum number of rooms")
	ErrKicked = errors.New("the participant was removed")
	ErrEnded  = errors.New("the session has ended")
	ErrPlace  = errors.New("the participant is not in the room")
)

// SetRoomState replaces this node's part of the state of a room that the node has entered. The error wraps ErrRoom.
func (v *views) SetRoomState(room string, state RoomState) error {
	l := v.journal.rooms[room]
	if l == nil {
		return fmt.Errorf("%w: %q", ErrRoom, room)
	}
	if err := state.validate(); err != nil {
		return err
	}
	if l.state == nil || !l.state.equal(&state) {
		v.journal.write(l, Change{State: &state})
	}
	return nil
}

// Join adds a participant of this node, without publications. It replaces the node's present record of the identity.
// The error wraps ErrRoom, or ErrKicked or ErrEnded if a tombstone covers the participant.
func (v *views) Join(now time.Time, room string, p Participant) error {
	l, in := v.journal.rooms[room], v.rooms[room]
	if l == nil {
		return fmt.Errorf("%w: %q", ErrRoom, room)
	}
	if err := p.validate(); err != nil {
		return err
	}
	if t := v.tombstones.covering(room, &p); t != nil {
		err := ErrKicked
		if t.Kind == TombstoneSession {
			err = ErrEnded
		}
		return fmt.Errorf("%w: %q in %q", err, p.Identity, room)
	}
	if l.content[p.Identity] != nil {
		v.journal.write(l, Change{Left: p.Identity})
	}
	v.journal.write(l, Change{Participant: &p})
	v.refresh(now, in, p.Identity, LeftItself)
	return nil
}

// local returns the log of a room and the record of a participant of this node with the session, or an error.
func (v *views) local(room, identity, session string) (*log, *record, error) {
	l := v.journal.rooms[room]
	if l == nil {
		return nil, nil, fmt.Errorf("%w: %q", ErrRoom, room)
	}
	present := l.content[identity]
	if present == nil || session != "" && present.participant.Session != session {
		return nil, nil, fmt.Errorf("%w: %q in %q", ErrPlace, identity, room)
	}
	return l, present, nil
}

// Change changes the record of a participant of this node. A session that returns from another node, with a higher
// epoch, joins again without publications, also if this node has not received the claim of the other node. The error
// wraps ErrRoom, or ErrPlace if the node has no participant with this identity and session.
func (v *views) Change(now time.Time, room string, p Participant) error {
	l, present, err := v.local(room, p.Identity, p.Session)
	if err == nil {
		err = p.validate()
	}
	if err != nil {
		return err
	}
	if p.Epoch > present.participant.Epoch {
		return v.Join(now, room, p)
	}
	v.journal.write(l, Change{Participant: &p})
	v.refresh(now, v.rooms[room], p.Identity, LeftItself)
	return nil
}

// Publish adds a publication of a participant of this node, or changes the one with the same name. The errors are those
// of Change.
func (v *views) Publish(now time.Time, room, identity string, p Publication) error {
	l, _, err := v.local(room, identity, "")
	if err == nil {
		err = p.Description.Validate()
	}
	if err != nil {
		return err
	}
	v.journal.write(l, Change{Publisher: identity, Publication: &p})
	v.refresh(now, v.rooms[room], identity, LeftItself)
	return nil
}

// Publications returns the publications of a participant of this node, whichever claim has the identity.
func (v *views) Publications(room, identity, session string) []Publication {
	_, present, err := v.local(room, identity, session)
	if err != nil {
		return nil
	}
	list := make([]Publication, 0, len(present.publications))
	for _, p := range present.publications {
		list = append(list, *p)
	}
	return list
}

// Unpublish removes a publication of a participant of this node.
func (v *views) Unpublish(now time.Time, room, identity, name string) {
	l, present, err := v.local(room, identity, "")
	if err != nil || present.find(name) < 0 {
		return
	}
	v.journal.write(l, Change{Publisher: identity, Unpublished: name})
	v.refresh(now, v.rooms[room], identity, LeftItself)
}
