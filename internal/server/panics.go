package server

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster/member"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/metrics"
	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/internal/recorder"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/internal/trunk"
	"github.com/volsfu/volsfu/internal/turnserver"
)

// The places of panics that end one client. They are values of a label.
const (
	// placeRequest is an HTTP request on the clients' listener, and the reading side of a websocket.
	placeRequest = "request"
	// placeOperator is an HTTP request on the operators' listener.
	placeOperator = "operator"
)

// newGuard returns the server's guard, which logs panics, and adds its counters to the metrics.
func newGuard(registry *prometheus.Registry, log *zap.Logger) (*panics.Guard, error) {
	guard := panics.NewGuard(func(r panics.Report) {
		log.Error("panic: the server ended the client or the room concerned and goes on; please report this",
			zap.String("where", r.Where),
			zap.String("panic", fmt.Sprint(r.Value)), zap.Uint64("unreported", r.Unreported),
			zap.ByteString("stack", r.Stack))
	}, slices.Concat([]string{placeRequest, placeOperator}, transport.PanicPlaces, forward.PanicPlaces, sfu.PanicPlaces,
		signalling.PanicPlaces, []string{turnserver.PanicPlace, recorder.PanicPlace, trunk.Place, member.Place})...)
	for _, where := range guard.Places() {
		if err := metrics.Register(registry, metrics.Counted(metrics.Panics, where,
			func() uint64 { return guard.Count(where) })); err != nil {
			return nil, err
		}
	}
	return guard, nil
}

// guarded returns a handler whose panics are counted and logged. The HTTP server recovers from panics of handlers, and
// closes the connection; deferred calls of a handler that has hijacked the connection close its websocket.
func guarded(guard *panics.Guard, where string, inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			value := recover()
			if value == nil {
				return
			}
			if value != http.ErrAbortHandler {
				guard.Note(where, value, debug.Stack())
			}
			// The HTTP server closes the connection without a log line.
			panic(http.ErrAbortHandler)
		}()
		inner.ServeHTTP(w, r)
	})
}
