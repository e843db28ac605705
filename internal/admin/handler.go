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

// Readiness tells whether the process may be sent new clients.
type Readiness interface {
	// NotReady gives the reasons why not, such as "starting" or "draining"; none means ready. It may be called by several goroutines at once.
	NotReady() []string
}

const (
	// scrapesAtOnce: one Prometheus scrapes at a time, a second one and a person may look in meanwhile.
	scrapesAtOnce = 4
	// scrapeTimeout is Prometheus's own default; the answer to a later scrape would come to nobody.
	scrapeTimeout = 10 * time.Second
)

// Endpoints are what the operators' listener serves.
type Endpoints struct {
	Metrics prometheus.Gatherer
	// API serves the addresses below APIPath.
	API http.Handler
	// CommandLine is what /debug/pprof/cmdline shows. It must have no secrets.
	CommandLine []string
	// AllowedHosts are names under which browsers may open the listener, as in Config.
	AllowedHosts []string
	// Checks are what /readyz asks: the process is ready if no check has a reason against that.
	Checks []Readiness
}

// Handler serves /metrics, /healthz, /readyz, /debug/pprof/, and the API. It refuses requests of pages of other
// servers.
func Handler(e Endpoints) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(e.Metrics, promhttp.HandlerOpts{
		// One broken collector must not take the others' metrics with it.
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
	// go tool pprof posts the addresses that it wants names for.
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
	// A load balancer's cache would tell of yesterday.
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// Who asked has gone where this fails; there is nobody to tell.
	_, _ = io.WriteString(w, text+"\n")
}
