package sfu

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	p.subscriber.SetLimits(p.room.settings.within(p.limits), p.room.node.config.ClaimedMin, p.room.node.engine.StartRate())
}

// within returns the limits of a client within those of the settings, nil for no settings.
func (s *RoomSettings) within(limits signal.BitrateLimits) signal.BitrateLimits {
	if s != nil && s.MaxBitrate != 0 && (limits.Max == 0 || limits.Max > s.MaxBitrate) {
		limits.Max = s.MaxBitrate
		limits.Min, limits.Start = min(limits.Min, limits.Max), min(limits.Start, limits.Max)
	}
	return limits
}

// checkPlaces returns an error if a room with a number of participants has no place for another. The limit is that of
// the settings, nil if there are none, or that of the configuration.
func (s *RoomSettings) checkPlaces(present int, config *Config) *signal.Error {
	limit, name := config.ParticipantsPerRoom, "rooms.participants_per_room"
	if s != nil && s.MaxParticipants != 0 && s.MaxParticipants < limit {
		limit, name = s.MaxParticipants, "max_participants of the room"
	}
	if present >= limit {
		return refuse(signal.CodeLimit, "the room has the maximum of %d participants (%s)", limit, name)
	}
	return nil
}

// checkPublications returns an error if a participant with a number of publications would have too many. Without
// settings there is no limit but that of the configuration.
func (s *RoomSettings) checkPublications(count int) *signal.Error {
	if s != nil && s.MaxPublications != 0 && count > s.MaxPublications {
		return refuse(signal.CodeLimit, "the limit is %d publications per participant (max_publications of the room)",
			s.MaxPublications)
	}
	return nil
}
