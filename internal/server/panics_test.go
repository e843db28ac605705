package server

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/volsfu/volsfu/internal/config"
)

// TestPanicEndsOneRequest has handlers panic before they answer, after they have hijacked the connection, and with
// http.ErrAbortHandler.
func TestPanicEndsOneRequest(t *testing.T) {
	core, logged := observer.New(zap.InfoLevel)
	registry := prometheus.NewRegistry()
	guard, err := newGuard(registry, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/well", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "well") })
	mux.HandleFunc("/panics", func(http.ResponseWriter, *http.Request) {
		var nothing *struct{ field int }
		nothing.field++
	})
	mux.HandleFunc("/aborts", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/hijacks", func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		// As the handlers of websockets do.
		defer func() { _ = conn.Close() }()
		panic("after the upgrade")
	})
	server := httptest.NewServer(guarded(guard, placeRequest, mux))
	defer server.Close()
	for _, path := range []string{"/panics", "/aborts", "/hijacks"} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if answer, err := io.ReadAll(conn); err != nil || len(answer) > 0 {
			t.Errorf("%s: the answer is %q, %v, expected the end of the connection", path, answer, err)
		}
		_ = conn.Close()
		response, err := server.Client().Get(server.URL + "/well")
		if err != nil {
			t.Fatalf("after %s the server does not answer: %v", path, err)
		}
		if text, err := io.ReadAll(response.Body); err != nil || string(text) != "well" {
			t.Errorf("after %s the server answers %q, %v", path, text, err)
		}
		_ = response.Body.Close()
	}
	// A handler that has hijacked its connection closes it before the panic is counted.
	for end := time.Now().Add(time.Minute); guard.Count(placeRequest) < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d panics are counted, expected 2", guard.Count(placeRequest))
		}
	}
	want := `# HELP volsfu_panics_total Panics confined to one client or one room, by kind of goroutine.
# TYPE volsfu_panics_total counter
volsfu_panics_total{where="channel"} 0
volsfu_panics_total{where="cluster"} 0
volsfu_panics_total{where="connection"} 0
volsfu_panics_total{where="handshake"} 0
volsfu_panics_total{where="ice"} 0
volsfu_panics_total{where="ingress"} 0
volsfu_panics_total{where="media"} 0
volsfu_panics_total{where="operator"} 0
volsfu_panics_total{where="other"} 0
volsfu_panics_total{where="outbox"} 0
volsfu_panics_total{where="recorder"} 0
volsfu_panics_total{where="request"} 2
volsfu_panics_total{where="room"} 0
volsfu_panics_total{where="tcp"} 0
volsfu_panics_total{where="trunk"} 0
volsfu_panics_total{where="turn"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "volsfu_panics_total"); err != nil {
		t.Error(err)
	}
	lines := logged.All()
	if len(lines) == 0 {
		t.Fatal("no line is logged, expected that of the first panic at least")
	}
	fields := lines[0].ContextMap()
	if stack, _ := fields["stack"].(string); fields["where"] != placeRequest ||
		!strings.Contains(stack, "TestPanicEndsOneRequest") {
		t.Errorf("the log has %v, expected the place and the stack", fields)
	}
}

// TestPanicsAreAmongTheMetrics: every place has its series before the first panic.
func TestPanicsAreAmongTheMetrics(t *testing.T) {
	s := newStage(t, func(c *config.Config) { c.Admin.Listen = "127.0.0.1:0" })
	scraped := s.scrape(t)
	for _, line := range []string{`volsfu_panics_total{where="operator"} 0`, `volsfu_panics_total{where="other"} 0`,
		`volsfu_panics_total{where="request"} 0`} {
		if !strings.Contains(scraped, line+"\n") {
			t.Errorf("%s is not among the metrics", line)
		}
	}
}

// TestPlacesOfPanicsAreDocumented compares the table of docs/operations.md with the places of the guard.
func TestPlacesOfPanicsAreDocumented(t *testing.T) {
	guard, err := newGuard(prometheus.NewRegistry(), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| `where` | goroutine |\n")
	if !found {
		t.Fatal("docs/operations.md has no table of the places of panics")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	for _, place := range guard.Places() {
		if !strings.Contains(table, "| `"+place+"` |") {
			t.Errorf("the table of docs/operations.md does not have %q", place)
		}
	}
}
