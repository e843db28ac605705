package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/pkg/signal"
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

// roomBody is the body of PUT for a room.
type roomBody struct {
	admission.RoomSettings
	// Metadata changes the metadata of the room: absent entries stay, and an empty value deletes an entry.
	Metadata map[string]string `json:"metadata"`
}

// putRoom creates a room with settings, or replaces the settings of a present room.
func (a *API) putRoom(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("room")
	var body roomBody
	err := read(w, r, &body)
	created := false
	if err == nil && body.Metadata != nil {
		// Before the room exists.
		_, err = signal.MergeAttributes("metadata", nil, body.Metadata)
	}
	if err == nil {
		created, err = a.rooms.SetRoom(r.Context(), name, body.RoomSettings, r.Header.Get("If-None-Match") == "*")
	}
	if err == nil && body.Metadata != nil {
		err = a.rooms.SetMetadata(r.Context(), name, body.Metadata)
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
	reply(w, status, roomsOn(a.self(), rooms)[0])
}

// patchRoom changes the metadata of a room.
func (a *API) patchRoom(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("room")
	var body struct {
		Metadata map[string]string `json:"metadata"`
	}
	err := read(w, r, &body)
	if err == nil {
		err = a.rooms.SetMetadata(r.Context(), name, body.Metadata)
	}
	a.act(w, r, err, "metadata of a room changed", zap.String("room", name))
}

// messageBody is the body of a data message.
type messageBody struct {
	To     []string `json:"to"`
	Topic  string   `json:"topic"`
	Text   string   `json:"text"`
	Binary []byte   `json:"binary"`
}

// send sends a data message to participants of a room.
func (a *API) send(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("room")
	var body messageBody
	err := read(w, r, &body)
	if err == nil {
		err = a.rooms.SendData(r.Context(), name, signal.Data{
			To: body.To, Topic: body.Topic, Text: body.Text, Binary: body.Binary,
		})
	}
	if err != nil {
		a.fail(w, err)
		return
	}
	// Not logged: a backend may send many messages.
	w.WriteHeader(http.StatusNoContent)
}

// participantBody is the body of PATCH for a participant. Absent keys change nothing.
type participantBody struct {
	Permissions *struct {
		Publish   *bool `json:"publish"`
		Subscribe *bool `json:"subscribe"`
		Data      *bool `json:"data"`
	} `json:"permissions"`
	// Muted has publications by name.
	Muted      map[string]bool   `json:"muted"`
	Attributes map[string]string `json:"attributes"`
}

// patchParticipant changes the permissions, the muted publications and the attributes of a participant, in this order.
// The first error ends the request; earlier changes remain.
func (a *API) patchParticipant(w http.ResponseWriter, r *http.Request) {
	room, identity := r.PathValue("room"), r.PathValue("identity")
	var body participantBody
	err := read(w, r, &body)
	if p := body.Permissions; err == nil && p != nil {
		err = a.rooms.SetPermissions(r.Context(), room, identity, signal.SetPermissions{
			Publish: p.Publish, Subscribe: p.Subscribe, Data: p.Data,
		})
	}
	for _, publication := range slices.Sorted(maps.Keys(body.Muted)) {
		if err == nil {
			err = a.rooms.Mute(r.Context(), room, identity, publication, body.Muted[publication])
		}
	}
	if err == nil && body.Attributes != nil {
		err = a.rooms.SetAttributes(r.Context(), room, identity, body.Attributes)
	}
	a.act(w, r, err, "participant changed", zap.String("room", room), zap.String("participant", identity))
}
