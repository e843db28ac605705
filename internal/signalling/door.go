package signalling

import (
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
)

// refusal is why the door lets somebody not in.
type refusal int

const (
	refusedOpen refusal = iota
	refusedRate
	refusedHeader
	refusals
)

// Door is what everybody comes through who opens a websocket or asks for the rooms, of whatever dialect: it bounds what one address may open, before anything is known of who
// asks. It is safe for concurrent use.
type Door struct {
	sources sources
	crowd   *crowd[netip.Prefix]
	metrics Metrics
	log     *Log
	refused [refusals]atomic.Uint64
}

// DoorStats are how often the door has let somebody not in, by reason: too many open from one address, too many opened, and a proxy's header that cannot be read.
type DoorStats struct{ Open, Rate, Header uint64 }

// NewDoor makes the door of one listener.
func NewDoor(config Config, metrics Metrics, log *Log) (*Door, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	from, err := newSources(config.TrustedProxies, config.ProxyHeader)
	if err != nil {
		return nil, err
	}
	limits := config.addressLimits()
	return &Door{sources: from, crowd: newCrowd[netip.Prefix](limits), metrics: metrics, log: log}, nil
}

// Stats counts who was not let in.
func (d *Door) Stats() DoorStats {
	return DoorStats{Open: d.refused[refusedOpen].Load(), Rate: d.refused[refusedRate].Load(), Header: d.refused[refusedHeader].Load()}
}

// Trusts tells whether an address is that of a trusted proxy.
func (d *Door) Trusts(address netip.Addr) bool { return d.sources.trusts(plain(address)) }

// Guard makes a handler that serves what the inner one does as long as the address that asks has not too much of it. The inner one sees a request of a trusted proxy as one of
// whom the proxy names.
func (d *Door) Guard(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address, err := d.sources.of(r)
		if err != nil {
			d.turnAway(w, r, http.StatusBadRequest, refusedHeader, signal.CodeInvalid, err, 0)
			return
		}
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		proxied := err == nil && plain(peer.Addr()) != address
		if proxied {
			named := *r
			named.RemoteAddr = netip.AddrPortFrom(address, 0).String()
			r = &named
		}
		if source, limited := transport.Source(address); limited {
			if err := d.crowd.enter(source, time.Now()); err != nil {
				wait := time.Duration(0)
				if !proxied {
					// The connections of a proxy are not bounded, and all its clients share them.
					wait = d.crowd.answerWait(source, time.Now(), maxRequestWait)
				}
				d.turnAway(w, r, http.StatusTooManyRequests, refusedOpen, signal.CodeRateLimited, err, wait)
				return
			}
			defer d.crowd.leave(source)
		}
		inner.ServeHTTP(w, r)
	})
}

// waited waits, and reports false if done is closed before.
func waited(done <-chan struct{}, wait time.Duration) bool {
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-done:
		return false
	}
}

// turnAway counts and logs a refused request, and answers it after the wait, unless the client has gone by then.
func (d *Door) turnAway(
	w http.ResponseWriter, r *http.Request, status int, why refusal, code signal.Code, err error, wait time.Duration,
) {
	var crowded *overcrowded
	if errors.As(err, &crowded) {
		why = crowded.reason
	}
	d.refused[why].Add(1)
	d.metrics.SignallingError(code)
	d.log.Refused(time.Now(), r.RemoteAddr, "connection refused", zap.Error(err))
	if !waited(r.Context().Done(), wait) {
		return
	}
	refuseCrowded(w, err)
	http.Error(w, string(code)+": "+err.Error(), status)
}

// refuseCrowded says in the answer's header when to come again, where an error is of a crowd.
func refuseCrowded(w http.ResponseWriter, err error) {
	var crowded *overcrowded
	if errors.As(err, &crowded) {
		w.Header().Set("Retry-After", strconv.Itoa(crowded.retryAfter()))
	}
}
