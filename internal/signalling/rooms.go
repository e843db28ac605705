package signalling

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/signal"
)

// RoomsPath is where clients learn which rooms they may join.
const RoomsPath = "/v1/rooms"

// roomsPerPage is how many rooms one answer lists at most: as many as there are by default. Names of 128 bytes that
// JSON writes as six times as much make 850 kB of them.
const roomsPerPage = 1000

// Lister tells how much goes on in rooms.
type Lister interface {
	// Summaries lists rooms by name: the named one, or all of them if the name is empty.
	Summaries(name string) []sfu.RoomSummary
}

// Page is one answer of Rooms.
type Page struct {
	Rooms []sfu.RoomSummary `json:"rooms"`
	// Next is what the parameter after has to be for the rooms that follow, absent if there are none.
	Next string `json:"next,omitempty"`
}

// Rooms lists the rooms that somebody is in and that the client's token lets it join, as a JSON object of type Page. It
// is authenticated as the websocket is. An answer takes some counts and no room's time; one token gets as many answers
// as it may open websockets, and the door bounds those of one address.
type Rooms struct {
	rooms  Lister
	auth   Authenticator
	pages  Pages
	asked  *quota[Fingerprint]
	counts Metrics
}

// NewRooms makes the handler for RoomsPath, with dev for servers that ask nobody for a token and listen on loopback
// alone.
func NewRooms(config Config, rooms Lister, auth Authenticator, counts Metrics, dev bool) *Rooms {
	limits := config.tokenLimits()
	limits.what = "requests for the list of rooms"
	return &Rooms{rooms: rooms, auth: auth, pages: Pages{Rebound: dev}, asked: newQuota[Fingerprint](limits),
		counts: counts}
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
	if credentials.Fingerprint != (Fingerprint{}) {
		if err := h.asked.spend(credentials.Fingerprint, 1, time.Now()); err != nil {
			h.counts.SignallingError(signal.CodeRateLimited)
			SetRetryAfter(w, err)
			http.Error(w, string(signal.CodeRateLimited)+": "+err.Error(), http.StatusTooManyRequests)
			return
		}
	}
	page, err := pageOf(h.rooms.Summaries(credentials.Room), r.URL.Query())
	if err != nil {
		http.Error(w, string(signal.CodeInvalid)+": "+err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	// The client has gone if this fails.
	_ = json.NewEncoder(w).Encode(page)
}

// pageOf is the part of a list, sorted by name, that a query asks for: the rooms whose names follow the parameter
// after, so many as the parameter limit says.
func pageOf(list []sfu.RoomSummary, query url.Values) (Page, error) {
	limit := roomsPerPage
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > roomsPerPage {
			return Page{}, fmt.Errorf("limit is %.20q, expected 1 to %d", text, roomsPerPage)
		}
		limit = n
	}
	after := query.Get("after")
	first := sort.Search(len(list), func(i int) bool { return after == "" || list[i].Name > after })
	page := Page{Rooms: list[first:]}
	if len(page.Rooms) > limit {
		page.Rooms = page.Rooms[:limit]
		page.Next = page.Rooms[limit-1].Name
	}
	return page, nil
}
