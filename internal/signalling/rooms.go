package signalling

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/signal"
)

// RoomsPath is where clients learn which rooms they may join.
const RoomsPath = "/v1/rooms"

// roomsTimeout bounds how long a room may take to say what goes on in it.
const roomsTimeout = 2 * time.Second

// Describer tells what goes on in rooms.
type Describer interface {
	Describe(ctx context.Context, name string, past bool) ([]sfu.RoomState, error)
}

// RoomSummary is what clients learn of a room before they join.
type RoomSummary struct {
	Name         string `json:"name"`
	Participants int    `json:"participants"`
	Publications int    `json:"publications"`
}

// Rooms lists the rooms that somebody is in and that the client's token lets it join, as a JSON object. It is authenticated as the websocket is.
type Rooms struct {
	rooms Describer
	auth  Authenticator
	pages pages
	log   *zap.Logger
}

// NewRooms makes the handler for RoomsPath, with dev for servers that ask nobody for a token and listen on loopback alone.
func NewRooms(rooms Describer, auth Authenticator, log *zap.Logger, dev bool) *Rooms {
	return &Rooms{rooms: rooms, auth: auth, pages: pages{rebound: dev}, log: log}
}

// ServeHTTP implements http.Handler.
func (h *Rooms) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	credentials, err := h.auth.Authenticate(r)
	if err != nil {
		http.Error(w, string(signal.CodeUnauthorized)+": "+err.Error(), http.StatusUnauthorized)
		return
	}
	// A page sends no origin with what it gets of its own server, so that there is only the host to tell who asks.
	if !h.pages.trusts(r.Host) {
		http.Error(w, string(signal.CodeForbidden)+": expected a loopback address in place of the name "+strconv.Quote(r.Host), http.StatusForbidden)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), roomsTimeout)
	defer cancel()
	states, err := h.rooms.Describe(ctx, credentials.Room, false)
	if err != nil {
		h.log.Warn("rooms do not answer", zap.Error(err))
		http.Error(w, "rooms do not answer", http.StatusServiceUnavailable)
		return
	}
	list := make([]RoomSummary, len(states))
	for i, state := range states {
		list[i] = RoomSummary{Name: state.Name, Participants: len(state.Participants)}
		for _, p := range state.Participants {
			list[i].Publications += len(p.Publications)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	// Who asked has gone where this fails; there is nobody to tell.
	_ = json.NewEncoder(w).Encode(map[string][]RoomSummary{"rooms": list})
}
