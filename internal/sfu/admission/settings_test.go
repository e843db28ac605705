package admission

import (
	"errors"
	"testing"

	"github.com/volsfu/volsfu/pkg/signal"
)

// TestCheck: each setting has its limits, and the empty time a default.
func TestCheck(t *testing.T) {
	for _, s := range []RoomSettings{
		{MaxParticipants: -1}, {MaxPublications: -1}, {MaxBitrate: -1}, {MaxBitrate: minMaxBitrate - 1},
		{MaxBitrate: signal.MaxBitrate + 1}, {EmptyTimeoutMS: minEmptyTimeout.Milliseconds() - 1}, {EmptyTimeoutMS: -1},
		{EmptyTimeoutMS: maxEmptyTimeout.Milliseconds() + 1},
	} {
		if _, err := s.Check(); !errors.Is(err, ErrSettings) {
			t.Errorf("%+v: error is %v", s, err)
		}
	}
	for _, s := range []RoomSettings{
		{MaxParticipants: 1, MaxPublications: 1, MaxBitrate: minMaxBitrate},
		{MaxBitrate: signal.MaxBitrate, EmptyTimeoutMS: maxEmptyTimeout.Milliseconds()},
		{EmptyTimeoutMS: minEmptyTimeout.Milliseconds()},
	} {
		checked, err := s.Check()
		if s.EmptyTimeoutMS == 0 {
			s.EmptyTimeoutMS = defaultEmptyTimeout.Milliseconds()
		}
		if err != nil || checked != s {
			t.Errorf("the settings are %+v, %v, expected %+v", checked, err, s)
		}
	}
}
