package signalling

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu"
)

// empty is a server without rooms.
type empty struct{}

// Describe implements Describer.
func (empty) Describe(context.Context, string, bool) ([]sfu.RoomState, error) { return nil, nil }

// TestRoomsAreNotToldToStrangePages: with no token asked for, a page must not learn of rooms by having its own name resolved to this host.
func TestRoomsAreNotToldToStrangePages(t *testing.T) {
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
		NewRooms(empty{}, AllowAll{}, zap.NewNop(), test.dev).ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("host %q, dev %v: status %d, expected %d", test.host, test.dev, w.Code, test.want)
		}
	}
}
