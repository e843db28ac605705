package signalling

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/volsfu/volsfu/internal/sfu"
)

// many is a server with the given number of rooms.
type many int

// Summaries implements Lister.
func (n many) Summaries(string) []sfu.RoomSummary {
	list := []sfu.RoomSummary{}
	for i := range int(n) {
		list = append(list, sfu.RoomSummary{Name: fmt.Sprintf("%04d", i), Participants: i})
	}
	return list
}

// oneToken is an Authenticator that assigns the same token to every client.
type oneToken struct{}

// Authenticate implements Authenticator.
func (oneToken) Authenticate(*http.Request) (Credentials, error) {
	return Credentials{Fingerprint: Fingerprint{1}}, nil
}

// TestPagesOfRooms lists more rooms than fit in one answer, page by page, and checks that invalid limits are refused.
func TestPagesOfRooms(t *testing.T) {
	h := NewRooms(DefaultConfig(), many(roomsPerPage+5), AllowAll{}, uncounted{}, false)
	get := func(query string) (page Page, status int) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, RoomsPath+query, nil))
		if w.Code == http.StatusOK {
			if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
				t.Fatal(err)
			}
		}
		return page, w.Code
	}
	first, _ := get("")
	rest, _ := get("?after=" + first.Next)
	if len(first.Rooms) != roomsPerPage || len(rest.Rooms) != 5 || rest.Rooms[0].Name != "1000" || rest.Next != "" {
		t.Errorf("pages of %d and %d rooms, the second from %+v", len(first.Rooms), len(rest.Rooms), rest)
	}
	if page, _ := get("?limit=2&after=0003"); len(page.Rooms) != 2 || page.Rooms[0].Name != "0004" ||
		page.Next != "0005" {
		t.Errorf("two rooms after 0003 are %+v", page)
	}
	if page, _ := get("?after=9"); page.Rooms == nil || len(page.Rooms) != 0 {
		t.Errorf("after the last room come %+v", page)
	}
	for _, limit := range []string{"0", "-1", "1001", "many"} {
		if _, status := get("?limit=" + limit); status != http.StatusBadRequest {
			t.Errorf("limit %s: status %d", limit, status)
		}
	}
}

// TestRoomsForOneToken checks the limit of lists for one token and the retry time.
func TestRoomsForOneToken(t *testing.T) {
	config := DefaultConfig()
	config.TokenRate, config.TokenBurst = 1e-9, 2
	h := NewRooms(config, many(1), oneToken{}, uncounted{}, false)
	for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, RoomsPath, nil))
		if w.Code != want || (w.Header().Get("Retry-After") != "") != (want == http.StatusTooManyRequests) {
			t.Errorf("list %d: status %d, Retry-After %q, expected %d", i, w.Code, w.Header().Get("Retry-After"), want)
		}
	}
}

// TestRoomsAreRefusedToForeignHosts checks that without tokens, a page cannot list rooms by DNS rebinding.
func TestRoomsAreRefusedToForeignHosts(t *testing.T) {
	for _, test := range []struct {
		host string
		dev  bool
		want int
	}{
		{"localhost:8080", true, http.StatusOK},
		{"127.0.0.1:8080", true, http.StatusOK},
		{"evil.example:8080", true, http.StatusForbidden},
		{"sfu.example.org", false, http.StatusOK},
	} {
		r := httptest.NewRequest(http.MethodGet, RoomsPath, nil)
		r.Host = test.host
		w := httptest.NewRecorder()
		NewRooms(DefaultConfig(), many(0), AllowAll{}, uncounted{}, test.dev).ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("host %q, dev %v: status %d, expected %d", test.host, test.dev, w.Code, test.want)
		}
	}
}
