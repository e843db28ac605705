package admin

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/sfu/admission"
)

// APIPath is where the operators' interface stands, on the operators' listener and on that of the clients.
const APIPath = "/admin/v1/"

// Errors of a Gate.
var (
	// ErrUnauthorized: nobody is known to ask, or not by a valid token.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrForbidden: who asks is known, and not an operator.
	ErrForbidden = errors.New("forbidden")
)

// Gate decides who may use the interface.
type Gate interface {
	// Admit gives nil, or an error around ErrUnauthorized or ErrForbidden whose text may be told.
	Admit(r *http.Request) error
}

// Rooms is the control plane as operators see it.
type Rooms interface {
	Describe(ctx context.Context, room string, past bool) ([]sfu.RoomState, error)
	// Kick removes a participant, and keeps it from the room for a time if that is not 0.
	Kick(ctx context.Context, room, identity string, ban time.Duration) error
	CloseRoom(ctx context.Context, room string) error
	Bans() []admission.Ban
	Unban(room, identity string) error
	// Revoke has a token be refused by its id, for a time or, if that is 0, for the time that the server chooses.
	Revoke(id string, lasts time.Duration) error
	Revocations() []admission.Revocation
	Restore(id string) error
}

// Host is the server as a whole.
type Host interface {
	State() ServerState
	// StartDrain has the server take nobody new and end when all have gone, as a signal to its process does.
	StartDrain()
}

const (
	// answerTimeout bounds how long rooms may take to say what goes on in them.
	answerTimeout = 2 * time.Second
	// eventInterval is how often a console hears what goes on.
	eventInterval = time.Second
)

// description is the interface in OpenAPI 3.1.
//
//go:embed openapi.yaml
var description []byte

// API is the operators' interface: what goes on, and what to do about it. It implements http.Handler for addresses below APIPath; docs/operations.md and openapi.yaml
// describe it.
type API struct {
	gate  Gate
	rooms Rooms
	host  Host
	log   Log
	mux   *http.ServeMux
}

// Log is the log of an API.
type Log interface {
	Info(message string, fields ...zap.Field)
	// Refused logs that a remote address was refused something. It bounds the lines per address.
	Refused(now time.Time, remote, what string, fields ...zap.Field)
}

// NewAPI makes the interface for those whom the gate admits.
func NewAPI(gate Gate, rooms Rooms, host Host, log Log) *API {
	a := &API{gate: gate, rooms: rooms, host: host, log: log, mux: http.NewServeMux()}
	a.mux.HandleFunc("GET /admin/v1/openapi.yaml", a.describe)
	a.mux.HandleFunc("GET /admin/v1/server", a.server)
	a.mux.HandleFunc("GET /admin/v1/rooms", a.list)
	a.mux.HandleFunc("GET /admin/v1/rooms/{room}", a.room)
	a.mux.HandleFunc("GET /admin/v1/events", a.events)
	a.mux.HandleFunc("DELETE /admin/v1/rooms/{room}", a.closeRoom)
	a.mux.HandleFunc("DELETE /admin/v1/rooms/{room}/participants/{identity}", a.kick)
	a.mux.HandleFunc("GET /admin/v1/bans", a.bans)
	a.mux.HandleFunc("DELETE /admin/v1/rooms/{room}/bans/{identity}", a.unban)
	a.mux.HandleFunc("GET /admin/v1/revocations", a.revocations)
	a.mux.HandleFunc("PUT /admin/v1/revocations/{id}", a.revoke)
	a.mux.HandleFunc("DELETE /admin/v1/revocations/{id}", a.restore)
	a.mux.HandleFunc("POST /admin/v1/drain", a.drain)
	return a
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
	rooms, err := a.states(r.Context(), "", r.URL.Query().Get("past") == "1")
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	reply(w, http.StatusOK, map[string][]sfu.RoomState{"rooms": rooms})
}

func (a *API) room(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("room")
	rooms, err := a.states(r.Context(), name, r.URL.Query().Get("past") == "1")
	switch {
	case err != nil:
		refuse(w, http.StatusServiceUnavailable, err.Error())
	case len(rooms) == 0:
		refuse(w, http.StatusNotFound, fmt.Sprintf("there is no room %q", name))
	default:
		reply(w, http.StatusOK, rooms[0])
	}
}

func (a *API) states(ctx context.Context, room string, past bool) ([]sfu.RoomState, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return a.rooms.Describe(ctx, room, past)
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
	a.act(w, r, a.rooms.Unban(room, identity), "ban ended", zap.String("room", room), zap.String("participant", identity))
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

// lasting reads the parameter of a request that says how long something lasts, 0 if the parameter is absent.
func lasting(r *http.Request, parameter string) (time.Duration, error) {
	text := r.URL.Query().Get(parameter)
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%w: %s is %.40q, expected a duration over 0 such as 90m or 24h", admission.ErrExclusion, parameter,
			text)
	}
	return d, nil
}

func (a *API) drain(w http.ResponseWriter, r *http.Request) {
	a.host.StartDrain()
	a.act(w, r, nil, "drain asked for")
}

// act answers for something that was done, or could not be, and logs it.
func (a *API) act(w http.ResponseWriter, r *http.Request, err error, what string, fields ...zap.Field) {
	switch {
	case errors.Is(err, sfu.ErrNotFound):
		refuse(w, http.StatusNotFound, err.Error())
	case errors.Is(err, admission.ErrExclusion):
		refuse(w, http.StatusBadRequest, err.Error())
	case errors.Is(err, admission.ErrFull):
		refuse(w, http.StatusInsufficientStorage, err.Error())
	case err != nil:
		refuse(w, http.StatusServiceUnavailable, err.Error())
	default:
		a.log.Info("operator: "+what, append(fields, zap.String("remote", r.RemoteAddr))...)
		w.WriteHeader(http.StatusNoContent)
	}
}

// Snapshot is one event of the stream: everything, once per second.
type Snapshot struct {
	Server ServerState     `json:"server"`
	Rooms  []sfu.RoomState `json:"rooms"`
}

// events tells what goes on as server-sent events of type "state", the first one with the history of receivers, until
// who asked goes away, or the gate admits it no longer: its token has ended, or was revoked.
func (a *API) events(w http.ResponseWriter, r *http.Request) {
	stream := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	// Proxies that gather what they pass on would hold events back.
	w.Header().Set("X-Accel-Buffering", "no")
	ticker := time.NewTicker(eventInterval)
	defer ticker.Stop()
	for past := true; ; past = false {
		rooms, err := a.states(r.Context(), "", past)
		if err != nil {
			return
		}
		data, err := json.Marshal(Snapshot{a.host.State(), rooms})
		if err != nil {
			panic("states are plain data: " + err.Error())
		}
		// A console that does not read is let go; listeners bound how long a whole answer may take, which this one has no end for.
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
	// Who asked has gone where this fails; there is nobody to tell.
	_ = json.NewEncoder(w).Encode(body)
}

// refuse answers with an error that people can read.
func refuse(w http.ResponseWriter, status int, message string) {
	reply(w, status, map[string]string{"error": message})
}
