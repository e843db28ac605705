package admission

import (
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrSettings is wrapped with the wrong setting and the expected value.
var ErrSettings = errors.New("invalid settings of a room")

const (
	// defaultEmptyTimeout is the time in which the first participant of a room has to join, or a participant has to
	// return.
	defaultEmptyTimeout = 5 * time.Minute
	// minEmptyTimeout is a second: a shorter time would end a room before its first participant could join.
	minEmptyTimeout = time.Second
	// maxEmptyTimeout bounds the time for which a room without participants counts as one of rooms.rooms.
	maxEmptyTimeout = 7 * 24 * time.Hour
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

// Check returns the settings with defaults. The error wraps ErrSettings.
func (s RoomSettings) Check() (RoomSettings, error) {
	if s.EmptyTimeoutMS == 0 {
		s.EmptyTimeoutMS = defaultEmptyTimeout.Milliseconds()
	}
	switch {
	case s.MaxParticipants < 0:
		return s, fmt.Errorf("%w: max_participants is %d, expected 1 or more", ErrSettings, s.MaxParticipants)
	case s.MaxPublications < 0:
		return s, fmt.Errorf("%w: max_publications is %d, expected 1 or more", ErrSettings, s.MaxPublications)
	case s.MaxBitrate != 0 && (s.MaxBitrate < minMaxBitrate || s.MaxBitrate > signal.MaxBitrate):
		return s, fmt.Errorf("%w: max_bitrate_bps is %d, expected %d to %d", ErrSettings, int64(s.MaxBitrate),
			minMaxBitrate, int64(signal.MaxBitrate))
	case s.EmptyTimeoutMS < minEmptyTimeout.Milliseconds() || s.EmptyTimeoutMS > maxEmptyTimeout.Milliseconds():
		return s, fmt.Errorf("%w: empty_timeout_ms is %d, expected %d to %d", ErrSettings, s.EmptyTimeoutMS,
			minEmptyTimeout.Milliseconds(), maxEmptyTimeout.Milliseconds())
	}
	return s, nil
}

// EmptyTimeout returns the time after which the room ends without participants.
func (s *RoomSettings) EmptyTimeout() time.Duration {
	return time.Duration(s.EmptyTimeoutMS) * time.Millisecond
}

// Within returns the limits of a client within those of the settings, nil for no settings.
func (s *RoomSettings) Within(limits signal.BitrateLimits) signal.BitrateLimits {
	if s != nil && s.MaxBitrate != 0 && (limits.Max == 0 || limits.Max > s.MaxBitrate) {
		limits.Max = s.MaxBitrate
		limits.Min, limits.Start = min(limits.Min, limits.Max), min(limits.Start, limits.Max)
	}
	return limits
}

// CheckPlaces returns an error if a room with a number of participants has no place for another. The limit is that of
// the settings, nil if there are none, or the configured one.
func (s *RoomSettings) CheckPlaces(present, configured int) *signal.Error {
	limit, name := configured, "rooms.participants_per_room"
	if s != nil && s.MaxParticipants != 0 && s.MaxParticipants < limit {
		limit, name = s.MaxParticipants, "max_participants of the room"
	}
	if present >= limit {
		return signal.Errorf(signal.CodeLimit, "the room has the maximum of %d participants (%s)", limit, name)
	}
	return nil
}

// CheckPublications returns an error if a participant with a number of publications would have too many. Without
// settings there is no limit but that of the configuration.
func (s *RoomSettings) CheckPublications(count int) *signal.Error {
	if s != nil && s.MaxPublications != 0 && count > s.MaxPublications {
		return signal.Errorf(signal.CodeLimit,
			"the limit is %d publications per participant (max_publications of the room)", s.MaxPublications)
	}
	return nil
}
