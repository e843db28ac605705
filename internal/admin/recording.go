package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/recording"
)

// Recordings begins and ends the recordings of rooms.
type Recordings interface {
	StartRecording(ctx context.Context, room string, q recording.Qualities) error
	StopRecording(ctx context.Context, room string) error
}

// startRecording begins the recording of a room.
func (a *API) startRecording(w http.ResponseWriter, r *http.Request) {
	room := r.PathValue("room")
	q := recording.Qualities(cmp.Or(r.URL.Query().Get("qualities"), string(recording.Best)))
	if !q.Valid() {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("qualities is %.40q, expected %s or %s", q, recording.Best,
			recording.All))
		return
	}
	a.record(w, r, a.rooms.StartRecording(r.Context(), room, q), "recording began", zap.String("room", room),
		zap.String("qualities", string(q)))
}

// stopRecording ends the recording of a room.
func (a *API) stopRecording(w http.ResponseWriter, r *http.Request) {
	room := r.PathValue("room")
	a.record(w, r, a.rooms.StopRecording(r.Context(), room), "recording ended", zap.String("room", room))
}

// record answers a request that concerns a recording.
func (a *API) record(w http.ResponseWriter, r *http.Request, err error, done string, fields ...zap.Field) {
	if errors.Is(err, sfu.ErrNoRecorder) || errors.Is(err, sfu.ErrNotRecorded) {
		refuse(w, http.StatusConflict, err.Error())
		return
	}
	a.act(w, r, err, done, fields...)
}
