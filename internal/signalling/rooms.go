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

// RoomsPath is the path of the list of rooms.
const RoomsPath = "/v1/rooms"

// roomsPerPage bounds the rooms of one answer: the default maximum number of rooms. Names of 128 bytes, which JSON may
// escape to six times that length, make 850 kB.
const roomsPerPage = 1000

// Lister lists rooms and their activity.
type Lister interface {
	// Summaries returns the rooms sorted by name: only the named room, or all rooms if name is empty.
	Summaries(name string) []sfu.RoomSummary
}

// Page is one answer of Rooms.
type Page struct {
	Rooms []sfu.RoomSummary `json:"rooms"`
	// Next is the value of the parameter "after" for the next page. Next is absent on the last page.
	Next string `json:"next,omitempty"`
}

// Rooms serves the list of occupied rooms that the client's token may join, as a JSON object of type Page. Rooms
// authenticates requests like the websocket. An answer reads counters and costs the rooms no time. One token may
// request as many answers as it may open websockets; AddressLimits bounds the requests of one address.
type Rooms struct {
	rooms  Lister
	auth   Authenticator
	pages  Pages
	asked  *quota[Fingerprint]
	counts Metrics
}

// NewRooms returns the handler for RoomsPath. dev is set for servers that ask for no token and listen only on loopback.
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
	// A browser sends no Origin header with a page's requests to its own server, so only the Host header identifies the
	// page.
	if !h.pages.trusts(r.Host) {
		text := fmt.Sprintf("%s: the host is %q, expected a loopback address or localhost", signal.CodeForbidden,
			r.Host)
		http.Error(w, text, http.StatusForbidden)
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

// pageOf returns a part of list, which is sorted by name: the rooms after the parameter "after", at most as many as the
// parameter "limit".
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
