package admin

import (
	"io"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Readiness reports whether the process accepts new clients.
type Readiness interface {
	// NotReady returns the reasons against readiness, such as "starting" or "draining"; none means ready. NotReady may
	// be called by several goroutines at once.
	NotReady() []string
}

const (
	// scrapesAtOnce permits one Prometheus, a second one and a person at the same time.
	scrapesAtOnce = 4
	// scrapeTimeout is Prometheus's default; after that the scraper has disconnected.
	scrapeTimeout = 10 * time.Second
)

// Endpoints configures the handler of the operators' listener.
type Endpoints struct {
	Metrics prometheus.Gatherer
	// API serves the paths below APIPath.
	API http.Handler
	// CommandLine is the content of /debug/pprof/cmdline. CommandLine must not contain secrets.
	CommandLine []string
	// AllowedHosts are names under which browsers may open the listener, as in Config.
	AllowedHosts []string
	// Checks determine /readyz: the process is ready if no check has a reason against readiness.
	Checks []Readiness
}

// Handler serves /metrics, /healthz, /readyz, /debug/pprof/, and the API. The handler refuses requests from pages of
// other servers.
func Handler(e Endpoints) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(e.Metrics, promhttp.HandlerOpts{
		// A failing collector must not hide the metrics of others.
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: scrapesAtOnce,
		Timeout:             scrapeTimeout,
	}))
	mux.Handle(APIPath, e.API)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if reasons := reasonsAgainst(e.Checks); len(reasons) > 0 {
			answer(w, http.StatusServiceUnavailable, strings.Join(reasons, "\n"))
			return
		}
		answer(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	// pprof.Cmdline would show secrets among the arguments.
	mux.HandleFunc("GET /debug/pprof/cmdline", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, strings.Join(e.CommandLine, "\x00"))
	})
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	// go tool pprof posts the addresses whose names it needs.
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	return browsers{e.AllowedHosts}.guard(mux)
}

func reasonsAgainst(checks []Readiness) []string {
	var reasons []string
	for _, check := range checks {
		reasons = append(reasons, check.NotReady()...)
	}
	return reasons
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	// A cached answer would be outdated.
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// Fails if the client has disconnected.
	_, _ = io.WriteString(w, text+"\n")
}
