package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
)

// errBody is wrapped with the error in the body of a request and the expected body.
var errBody = errors.New("invalid body")

// maxBodyBytes bounds the body of a request. A data message has 16 KiB, which JSON may escape to six times that length.
const maxBodyBytes = 128 << 10

// read decodes the body of a request: a JSON object without unknown keys, or nothing, which leaves the defaults.
func read(w http.ResponseWriter, r *http.Request, into any) error {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	decoder.DisallowUnknownFields()
	switch err := decoder.Decode(into); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		if large := new(http.MaxBytesError); errors.As(err, &large) {
			return fmt.Errorf("%w: expected at most %d bytes", errBody, large.Limit)
		}
		return fmt.Errorf("%w: expected a JSON object with the keys of openapi.yaml: %w", errBody, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: expected one JSON object and nothing behind it", errBody)
	}
	return nil
}

// putRoom creates a room with settings, or replaces the settings of a present room.
func (a *API) putRoom(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("room")
	var settings sfu.RoomSettings
	err := read(w, r, &settings)
	created := false
	if err == nil {
		created, err = a.rooms.SetRoom(r.Context(), name, settings, r.Header.Get("If-None-Match") == "*")
	}
	if err != nil {
		a.fail(w, err)
		return
	}
	rooms, err := a.states(r.Context(), name, false)
	if err == nil && len(rooms) == 0 {
		err = fmt.Errorf("%w: the room %q has just ended", sfu.ErrNotFound, name)
	}
	if err != nil {
		a.fail(w, err)
		return
	}
	status, what := http.StatusOK, "settings of a room replaced"
	if created {
		status, what = http.StatusCreated, "room created"
	}
	a.done(r, what, zap.String("room", name))
	reply(w, status, rooms[0])
}
