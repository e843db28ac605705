package admin

import (
	"errors"
	"net/http"
	"slices"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
)

// ForNodes returns the handler of the requests of other nodes, which are admitted without the gate. The requests
// concern this node only: a request for a room or participant that this node does not have is answered with status 421.
func (a *API) ForNodes() http.Handler { return a.nodes.own }

// ownNode answers requests that concern this node of a cluster only.
type ownNode struct{ *API }

// routes returns the handlers by method and path.
func (a ownNode) routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"POST /drain":       a.drain,
		"GET /rooms":        a.rooms,
		"GET /rooms/{room}": a.ifPresent(a.room),

		"PUT /rooms/{room}":                            a.ifPresent(a.putRoom),
		"PATCH /rooms/{room}":                          a.ifPresent(a.patchRoom),
		"DELETE /rooms/{room}":                         a.ifPresent(a.closeRoom),
		"POST /rooms/{room}/messages":                  a.ifPresent(a.send),
		"PATCH /rooms/{room}/participants/{identity}":  a.ifPresent(a.patchParticipant),
		"DELETE /rooms/{room}/participants/{identity}": a.kick,
		"POST /rooms/{room}/recording":                 a.ifPresent(a.startRecording),
		"DELETE /rooms/{room}/recording":               a.ifPresent(a.stopRecording),
		"POST /rooms/{room}/move":                      a.ifPresent(a.move),

		"GET /bans":                            a.bans,
		"DELETE /rooms/{room}/bans/{identity}": a.unban,
		"GET /revocations":                     a.revocations,
		"PUT /revocations/{id}":                a.revoke,
		"DELETE /revocations/{id}":             a.restore,
	}
}

// ifPresent answers with status 421 if this node does not have the room of a request, or is not the home of its
// participant.
func (a ownNode) ifPresent(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		room, identity := r.PathValue("room"), r.PathValue("identity")
		states, err := a.states(r.Context(), room, false)
		if err != nil {
			a.fail(w, err)
			return
		}
		present := len(states) > 0 && (identity == "" || slices.ContainsFunc(states[0].Participants,
			func(p sfu.ParticipantState) bool { return p.Identity == identity }))
		if !present {
			refuse(w, http.StatusMisdirectedRequest, "the room or the participant is not on this node")
			return
		}
		handler(w, r)
	}
}

// kick removes a participant. A ban applies even if the participant is not present.
func (a ownNode) kick(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("ban") != "" {
		a.API.kick(w, r)
		return
	}
	a.ifPresent(a.API.kick)(w, r)
}

// rooms and room reply with the rooms of this node.
func (a ownNode) rooms(w http.ResponseWriter, r *http.Request) {
	states, err := a.states(r.Context(), "", r.URL.Query().Get("past") == "1")
	if err != nil {
		a.fail(w, err)
		return
	}
	reply(w, http.StatusOK, map[string][]sfu.RoomState{"rooms": states})
}

func (a ownNode) room(w http.ResponseWriter, r *http.Request) {
	states, err := a.states(r.Context(), r.PathValue("room"), r.URL.Query().Get("past") == "1")
	switch {
	case err != nil:
		a.fail(w, err)
	case len(states) == 0:
		refuse(w, http.StatusMisdirectedRequest, "the room has just ended on this node")
	default:
		reply(w, http.StatusOK, states[0])
	}
}

// move moves the participants of this node, at the request of a node.
func (a ownNode) move(w http.ResponseWriter, r *http.Request) {
	room := r.PathValue("room")
	var body moveBody
	err := read(w, r, &body)
	var state MoveState
	if err == nil {
		state.Moved, state.Remaining, err = a.cluster.Move(room, body.Node)
	}
	switch {
	case errors.Is(err, sfu.ErrNotFound):
		refuse(w, http.StatusMisdirectedRequest, err.Error())
		return
	case err != nil:
		a.fail(w, err)
		return
	}
	a.done(r, "participants of a room are asked to move", zap.String("room", room), zap.String("node", body.Node),
		zap.Int("moved", state.Moved), zap.Int("remaining", state.Remaining))
	reply(w, http.StatusOK, state)
}
