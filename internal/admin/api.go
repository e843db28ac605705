package admin

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/directory"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// APIPath is the path of the operators' API, on the operators' listener and on that of the clients.
const APIPath = "/admin/v1/"

// Methods are the methods of the API.
var Methods = []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete}

// Errors of a Gate.
var (
	// ErrUnauthorized: the request is not authenticated.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrForbidden: the request is authenticated, but not by an operator.
	ErrForbidden = errors.New("forbidden")
)

// Gate decides which requests may use the API.
type Gate interface {
	// Admit returns nil, or an error that wraps ErrUnauthorized or ErrForbidden and may be shown to the client.
	Admit(r *http.Request) error
}

// Rooms is the control plane from the view of operators.
type Rooms interface {
	States(ctx context.Context, room string, past bool) ([]sfu.RoomState, error)
	// Kick removes a participant, and bans it from the room for a time if ban is not 0.
	Kick(ctx context.Context, room, identity string, ban time.Duration) error
	CloseRoom(ctx context.Context, room string) error
	// SetRoom creates a room, or replaces the settings of a present room unless onlyNew is set.
	SetRoom(ctx context.Context, room string, settings admission.RoomSettings, onlyNew bool) (created bool, err error)
	// SetMetadata and SetAttributes change entries; an empty value deletes an entry.
	SetMetadata(ctx context.Context, room string, metadata map[string]string) error
	SetAttributes(ctx context.Context, room, identity string, attributes map[string]string) error
	// SendData sends a reliable data message to all participants, or to those that the message names.
	SendData(ctx context.Context, room string, m signal.Data) error
	Mute(ctx context.Context, room, identity, publication string, muted bool) error
	// SetPermissions changes the permissions that are not nil.
	SetPermissions(ctx context.Context, room, identity string, p signal.SetPermissions) error
	Bans() []admission.Ban
	Unban(room, identity string) error
	// Revoke rejects a token by its ID, for a time, or for the server's default time if lasts is 0.
	Revoke(id string, lasts time.Duration) error
	Revocations() []admission.Revocation
	Restore(id string) error
	Recordings
}

// Host is the server as a whole.
type Host interface {
	State() ServerState
	// StartDrain makes the server refuse new participants and stop when all have left, as a signal to the process does.
	StartDrain()
}

const (
	// answerTimeout bounds the time in which rooms return their state.
	answerTimeout = 2 * time.Second
	// eventInterval is the interval of the events for a console.
	eventInterval = time.Second
)

// description is the API's description in OpenAPI 3.1.
//
//go:embed openapi.yaml
var description []byte

// API is the operators' API: the state of rooms, and actions on them. An API implements http.Handler for paths below
// APIPath; docs/operations.md and openapi.yaml describe it.
type API struct {
	gate  Gate
	rooms Rooms
	host  Host
	log   Log
	mux   *http.ServeMux
	// cluster and nodes are nil if the server runs alone.
	cluster Cluster
	nodes   *nodes
}

// Log is the log of an API.
type Log interface {
	Info(message string, fields ...zap.Field)
	Error(message string, fields ...zap.Field)
	// Refused logs the refusal of a request from a remote address. Refused limits the lines per address.
	Refused(now time.Time, remote, what string, fields ...zap.Field)
}

// NewAPI returns the API for requests that the gate admits. cluster is nil if the server runs alone. In a cluster, the
// API shows and changes the rooms of all nodes.
func NewAPI(gate Gate, rooms Rooms, host Host, log Log, cluster Cluster) *API {
	a := &API{gate: gate, rooms: rooms, host: host, log: log, cluster: cluster}
	routes := a.routes()
	if cluster != nil {
		a.nodes = &nodes{cluster, muxOf(ownNode{a}.routes()), log}
		maps.Copy(routes, distributor{a}.routes())
	}
	a.mux = muxOf(routes)
	return a
}

// muxOf returns the mux of routes below APIPath.
func muxOf(routes map[string]http.HandlerFunc) *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, handler := range routes {
		method, path, _ := strings.Cut(pattern, " /")
		mux.HandleFunc(method+" "+APIPath+path, handler)
	}
	return mux
}

// routes returns the handlers by method and path below APIPath, as openapi.yaml describes them.
func (a *API) routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /openapi.yaml": a.describe,
		"GET /server":       a.server,
		"GET /events":       a.events,
		"POST /drain":       a.drain,

		"GET /rooms":                                   a.list,
		"GET /rooms/{room}":                            a.room,
		"PUT /rooms/{room}":                            a.putRoom,
		"PATCH /rooms/{room}":                          a.patchRoom,
		"DELETE /rooms/{room}":                         a.closeRoom,
		"POST /rooms/{room}/messages":                  a.send,
		"PATCH /rooms/{room}/participants/{identity}":  a.patchParticipant,
		"DELETE /rooms/{room}/participants/{identity}": a.kick,

		"GET /nodes":               a.listNodes,
		"POST /nodes/{node}/drain": a.drainNode,
		"POST /rooms/{room}/move":  a.move,

		"POST /rooms/{room}/recording":   a.startRecording,
		"DELETE /rooms/{room}/recording": a.stopRecording,

		"GET /bans":                            a.bans,
		"DELETE /rooms/{room}/bans/{identity}": a.unban,
		"GET /revocations":                     a.revocations,
		"PUT /revocations/{id}":                a.revoke,
		"DELETE /revocations/{id}":             a.restore,
	}
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err := a.gate.Admit(r); err != nil {
		status := http.StatusUnauthorized
		if errors.Is(err, ErrForbidden) {
			status = http.StatusForbidden
		}
		a.log.Refused(time.Now(), r.RemoteAddr, "operator refused", zap.Error(err))
		refuse(w, status, err.Error())
		return
	}
	a.mux.ServeHTTP(w, r)
}

func (a *API) describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(description)
}

func (a *API) server(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, a.host.State()) }

func (a *API) list(w http.ResponseWriter, r *http.Request) {
	rooms, failures, err := a.view(r.Context(), "", r.URL.Query().Get("past") == "1")
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	reply(w, http.StatusOK, roomList{rooms, failures})
}

// roomList is the answer with all rooms.
type roomList struct {
	Rooms []Room `json:"rooms"`
	// Failed are the nodes whose participants are missing.
	Failed []Failure `json:"failed,omitempty"`
}

// oneRoom is the answer with one room.
type oneRoom struct {
	Room
	Failed []Failure `json:"failed,omitempty"`
}

func (a *API) room(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("room")
	rooms, failures, err := a.view(r.Context(), name, r.URL.Query().Get("past") == "1")
	switch {
	case err != nil:
		refuse(w, http.StatusServiceUnavailable, err.Error())
	case len(rooms) == 0:
		text := fmt.Sprintf("there is no room %q", name)
		for _, failure := range failures {
			text += fmt.Sprintf("; node %s: %s", failure.Node, failure.Error)
		}
		refuse(w, http.StatusNotFound, text)
	default:
		reply(w, http.StatusOK, oneRoom{rooms[0], failures})
	}
}

func (a *API) states(ctx context.Context, room string, past bool) ([]sfu.RoomState, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return a.rooms.States(ctx, room, past)
}

func (a *API) closeRoom(w http.ResponseWriter, r *http.Request) {
	room := r.PathValue("room")
	a.act(w, r, a.rooms.CloseRoom(r.Context(), room), "room closed", zap.String("room", room))
}

func (a *API) kick(w http.ResponseWriter, r *http.Request) {
	room, identity := r.PathValue("room"), r.PathValue("identity")
	ban, err := lasting(r, "ban")
	if err == nil {
		err = a.rooms.Kick(r.Context(), room, identity, ban)
	}
	a.act(w, r, err, "participant removed", zap.String("room", room), zap.String("participant", identity),
		zap.Duration("ban", ban))
}

func (a *API) bans(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string][]admission.Ban{"bans": a.rooms.Bans()})
}

func (a *API) unban(w http.ResponseWriter, r *http.Request) {
	room, identity := r.PathValue("room"), r.PathValue("identity")
	a.act(w, r, a.rooms.Unban(room, identity), "ban ended", zap.String("room", room),
		zap.String("participant", identity))
}

func (a *API) revocations(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string][]admission.Revocation{"revocations": a.rooms.Revocations()})
}

func (a *API) revoke(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	lasts, err := lasting(r, "for")
	if err == nil {
		err = a.rooms.Revoke(id, lasts)
	}
	a.act(w, r, err, "token revoked", zap.String("token_id", id))
}

func (a *API) restore(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	a.act(w, r, a.rooms.Restore(id), "token accepted again", zap.String("token_id", id))
}

// lasting parses a duration parameter of a request, 0 if it is absent.
func lasting(r *http.Request, parameter string) (time.Duration, error) {
	text := r.URL.Query().Get(parameter)
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%w: %s is %.40q, expected a duration over 0 such as 90m or 24h",
			admission.ErrExclusion, parameter,
			text)
	}
	return d, nil
}

func (a *API) drain(w http.ResponseWriter, r *http.Request) {
	a.host.StartDrain()
	a.act(w, r, nil, "drain asked for")
}

// act answers a request for an action that succeeded or failed, and logs success.
func (a *API) act(w http.ResponseWriter, r *http.Request, err error, what string, fields ...zap.Field) {
	if err != nil {
		a.fail(w, err)
		return
	}
	a.done(r, what, fields...)
	w.WriteHeader(http.StatusNoContent)
}

// done logs an action that succeeded.
func (a *API) done(r *http.Request, what string, fields ...zap.Field) {
	a.log.Info("operator: "+what, append(fields, zap.String("remote", r.RemoteAddr))...)
}

// fail answers a request for an action that failed.
func (a *API) fail(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	for _, known := range []struct {
		err    error
		status int
	}{
		{sfu.ErrNotFound, http.StatusNotFound},
		{ErrNode, http.StatusNotFound},
		{ErrUnsuitable, http.StatusConflict},
		{errAlone, http.StatusNotFound},
		{errNodes, http.StatusBadGateway},
		{admission.ErrExclusion, http.StatusBadRequest},
		{admission.ErrSettings, http.StatusBadRequest},
		{signal.ErrInvalid, http.StatusBadRequest},
		{volumetric.ErrName, http.StatusBadRequest},
		{errBody, http.StatusBadRequest},
		{directory.ErrExists, http.StatusPreconditionFailed},
		{admission.ErrFull, http.StatusInsufficientStorage},
		{directory.ErrRooms, http.StatusInsufficientStorage},
	} {
		if errors.Is(err, known.err) {
			status = known.status
			break
		}
	}
	text := err.Error()
	if refused := new(signal.Error); errors.As(err, &refused) {
		text = refused.Message
		switch refused.Code {
		case signal.CodeInvalid, signal.CodeLimit:
			status = http.StatusBadRequest
		case signal.CodeRateLimited:
			status = http.StatusTooManyRequests
		}
	}
	refuse(w, status, text)
}

// Snapshot is one event of the stream: the whole state, once per second.
type Snapshot struct {
	Server ServerState `json:"server"`
	Rooms  []Room      `json:"rooms"`
	// Nodes are the nodes of the cluster, Failed those whose participants are missing. Both are absent if the server
	// runs alone.
	Nodes  []NodeState `json:"nodes,omitempty"`
	Failed []Failure   `json:"failed,omitempty"`
}

// events sends the state as server-sent events of type "state", the first with the history of receivers. The stream
// ends when the client disconnects, or when the gate no longer admits the request because its token has expired or was
// revoked.
func (a *API) events(w http.ResponseWriter, r *http.Request) {
	stream := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	// Buffering proxies would delay events.
	w.Header().Set("X-Accel-Buffering", "no")
	ticker := time.NewTicker(eventInterval)
	defer ticker.Stop()
	for past := true; ; past = false {
		rooms, failures, err := a.view(r.Context(), "", past)
		if err != nil {
			return
		}
		snapshot := Snapshot{Server: a.host.State(), Rooms: rooms, Failed: failures}
		if a.cluster != nil {
			snapshot.Nodes = a.cluster.Nodes()
		}
		data, err := json.Marshal(snapshot)
		if err != nil {
			panic("states are plain data: " + err.Error())
		}
		// Disconnects a console that does not read. The write timeout of the listener would end the whole stream.
		_ = stream.SetWriteDeadline(time.Now().Add(answerTimeout))
		if _, err := fmt.Fprintf(w, "event: state\ndata: %s\n\n", data); err != nil || stream.Flush() != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		}
		if a.gate.Admit(r) != nil {
			return
		}
	}
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// Fails if the client has disconnected.
	_ = json.NewEncoder(w).Encode(body)
}

// refuse answers with a readable error.
func refuse(w http.ResponseWriter, status int, message string) {
	reply(w, status, map[string]string{"error": message})
}
