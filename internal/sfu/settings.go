package sfu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Errors of SetRoom.
var (
	// ErrSettings is wrapped with the wrong setting and the expected value.
	ErrSettings = errors.New("invalid settings of a room")
	// ErrExists reports that the room exists.
	ErrExists = errors.New("the room exists")
	// ErrRooms reports that the server has the maximum number of rooms, or is about to stop.
	ErrRooms = errors.New("no further room")
)

const (
	// DefaultEmptyTimeout is the time in which the first participant of a room has to join, or a participant has to
	// return.
	DefaultEmptyTimeout = 5 * time.Minute
	// minEmptyTimeout is a second: a shorter time would end a room before its first participant could join.
	minEmptyTimeout = time.Second
	// MaxEmptyTimeout bounds the time for which a room without participants counts as one of rooms.rooms.
	MaxEmptyTimeout = 7 * 24 * time.Hour
	// minMaxBitrate is the least bit rate for which the server's estimators are made. It carries one voice.
	minMaxBitrate = 100_000
)

// RoomSettings are the settings of a room that the API has created. A limit of 0 means that of the server's
// configuration, which applies in any case.
type RoomSettings struct {
	// MaxParticipants bounds the participants, MaxPublications the publications of each of them. Both apply to joins
	// and publications after the setting.
	MaxParticipants int `json:"max_participants,omitempty"`
	MaxPublications int `json:"max_publications,omitempty"`
	// MaxBitrate bounds the bit rate that the server sends to each participant, in bit/s.
	MaxBitrate volumetric.Bitrate `json:"max_bitrate_bps,omitempty"`
	// EmptyTimeoutMS is the time in milliseconds after which the room ends without participants.
	EmptyTimeoutMS int64 `json:"empty_timeout_ms"`
}

// check returns the settings with defaults. The error wraps ErrSettings.
func (s RoomSettings) check() (RoomSettings, error) {
	if s.EmptyTimeoutMS == 0 {
		s.EmptyTimeoutMS = DefaultEmptyTimeout.Milliseconds()
	}
	switch {
	case s.MaxParticipants < 0:
		return s, fmt.Errorf("%w: max_participants is %d, expected 1 or more", ErrSettings, s.MaxParticipants)
	case s.MaxPublications < 0:
		return s, fmt.Errorf("%w: max_publications is %d, expected 1 or more", ErrSettings, s.MaxPublications)
	case s.MaxBitrate != 0 && (s.MaxBitrate < minMaxBitrate || s.MaxBitrate > signal.MaxBitrate):
		return s, fmt.Errorf("%w: max_bitrate_bps is %d, expected %d to %d", ErrSettings, int64(s.MaxBitrate),
			minMaxBitrate, int64(signal.MaxBitrate))
	case s.EmptyTimeoutMS < minEmptyTimeout.Milliseconds() || s.EmptyTimeoutMS > MaxEmptyTimeout.Milliseconds():
		return s, fmt.Errorf("%w: empty_timeout_ms is %d, expected %d to %d", ErrSettings, s.EmptyTimeoutMS,
			minEmptyTimeout.Milliseconds(), MaxEmptyTimeout.Milliseconds())
	}
	return s, nil
}

func (s *RoomSettings) emptyTimeout() time.Duration {
	return time.Duration(s.EmptyTimeoutMS) * time.Millisecond
}

// SetRoom creates a room that lasts until it has been empty for a time, or replaces the settings of a present room.
// If onlyNew is set, a present room is an error that wraps ErrExists. Other errors wrap ErrSettings or ErrRooms.
// Participants who are present beyond a new limit stay.
func (n *Node) SetRoom(
	ctx context.Context, name string, settings RoomSettings, onlyNew bool,
) (created bool, err error) {
	if err := volumetric.ValidateName("room", name); err != nil {
		return false, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	if settings, err = settings.check(); err != nil {
		return false, err
	}
	room, created, err := n.hold(name, settings, onlyNew)
	if created || err != nil {
		return created, err
	}
	result := make(chan struct{}, 1)
	room.post(settingsRequest{settings, result})
	if _, answered := await(ctx, room, result); !answered {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		return false, fmt.Errorf("%w: the room %q has just ended", ErrRooms, name)
	}
	return false, nil
}

// hold opens a room for the API, or sets the empty time of a present room.
func (n *Node) hold(name string, settings RoomSettings, onlyNew bool) (room *Room, created bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o, exists := n.rooms[name]
	switch {
	case n.draining:
		return nil, false, fmt.Errorf("%w: the server is about to stop", ErrRooms)
	case exists && onlyNew:
		return nil, false, fmt.Errorf("%w: %q", ErrExists, name)
	case !exists && len(n.rooms) >= n.config.Rooms:
		return nil, false, fmt.Errorf("%w: the server has the maximum of %d rooms (rooms.rooms)", ErrRooms,
			n.config.Rooms)
	case !exists:
		o = n.open(name, "", &settings)
		o.room.begin()
	}
	o.emptyTimeout = settings.emptyTimeout()
	if o.members == 0 {
		n.vacate(o)
	}
	return o.room, !exists, nil
}

// vacate ends a room without members after its empty time. The caller holds the node's mutex.
func (n *Node) vacate(o *occupied) {
	o.vacancy++
	vacancy := o.vacancy
	o.stopTimer()
	o.timer = time.AfterFunc(o.emptyTimeout, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.rooms[o.room.name] == o && o.members == 0 && o.vacancy == vacancy {
			n.remove(o)
			o.room.end()
		}
	})
}

func (o *occupied) stopTimer() {
	if o.timer != nil {
		o.timer.Stop()
	}
}

// release lets a room end with its last member, at once if the room has none. release reports whether the room exists,
// and whether it has ended.
func (n *Node) release(name string) (exists, ended bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o := n.rooms[name]
	if o == nil {
		return false, false
	}
	o.emptyTimeout = 0
	if o.members > 0 {
		return true, false
	}
	n.remove(o)
	o.room.end()
	return true, true
}

// settingsRequest replaces the settings of a room.
type settingsRequest struct {
	settings RoomSettings
	result   chan<- struct{}
}

// apply implements request.
func (q settingsRequest) apply(r *Room) {
	r.settings = &q.settings
	for _, p := range r.participants {
		p.limitBitrate()
	}
	q.result <- struct{}{}
}

// limitBitrate bounds the rate of a receiver by its own limits and those of the room.
func (p *participant) limitBitrate() {
	p.subscriber.SetLimits(p.bitrateLimits(), p.room.node.config.ClaimedMin, p.room.node.engine.StartRate())
}

// bitrateLimits returns the client's own limits within those of the room.
func (p *participant) bitrateLimits() signal.BitrateLimits {
	limits := p.limits
	if s := p.room.settings; s != nil && s.MaxBitrate != 0 && (limits.Max == 0 || limits.Max > s.MaxBitrate) {
		limits.Max = s.MaxBitrate
		limits.Min, limits.Start = min(limits.Min, limits.Max), min(limits.Start, limits.Max)
	}
	return limits
}

// checkPlaces returns an error if the room has no place for another participant.
func (r *Room) checkPlaces() *signal.Error {
	limit, name := r.node.config.ParticipantsPerRoom, "rooms.participants_per_room"
	if s := r.settings; s != nil && s.MaxParticipants != 0 && s.MaxParticipants < limit {
		limit, name = s.MaxParticipants, "max_participants of the room"
	}
	if len(r.participants)+r.span.size() >= limit {
		return refuse(signal.CodeLimit, "the room has the maximum of %d participants (%s)", limit, name)
	}
	return nil
}

// checkPublications returns an error if a participant with a number of publications would have too many in this room.
func (r *Room) checkPublications(count int) *signal.Error {
	if s := r.settings; s != nil && s.MaxPublications != 0 && count > s.MaxPublications {
		return refuse(signal.CodeLimit, "the limit is %d publications per participant (max_publications of the room)",
			s.MaxPublications)
	}
	return nil
}

// open adds a room, which the caller gives members or an empty time. The caller holds the node's mutex. settings is nil
// for a room that a join opens.
func (n *Node) open(name string, opener admission.Bearer, settings *RoomSettings) *occupied {
	o := &occupied{
		room: newRoom(n, name), places: make(map[admission.Bearer]int), opener: opener, end: make(chan struct{}),
	}
	if settings != nil {
		o.room.settings = settings
		o.room.census.Store(&census{})
	}
	n.rooms[name] = o
	o.room.span.tell(Entered{})
	n.running.Add(1)
	go o.room.run(o.end)
	n.metrics.Rooms(len(n.rooms))
	return o
}
