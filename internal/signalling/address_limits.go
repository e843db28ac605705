package signalling

import (
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/transport/ratelimit"
	"github.com/volsfu/volsfu/pkg/signal"
)

// refusal is the reason why a request is refused.
type refusal int

const (
	refusedOpen refusal = iota
	refusedRate
	refusedHeader
	refusals
)

// AddressLimits bounds the requests of one address, before authentication. All requests for websockets, of every
// protocol, and for the list of rooms pass through AddressLimits. AddressLimits is safe for concurrent use.
type AddressLimits struct {
	sources sources
	quota   *quota[netip.Prefix]
	metrics Metrics
	log     *Log
	refused [refusals]atomic.Uint64
}

// AddressStats counts the refused requests by reason: too many websockets open from one address, too many opened per
// second, and an unreadable header of a proxy.
type AddressStats struct{ Open, Rate, Header uint64 }

// NewAddressLimits returns the limits of one listener.
func NewAddressLimits(config Config, metrics Metrics, log *Log) (*AddressLimits, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	from, err := newSources(config.TrustedProxies, config.ProxyHeader)
	if err != nil {
		return nil, err
	}
	limits := config.addressLimits()
	return &AddressLimits{sources: from, quota: newQuota[netip.Prefix](limits), metrics: metrics, log: log}, nil
}

// Stats returns the numbers of refused requests.
func (l *AddressLimits) Stats() AddressStats {
	return AddressStats{
		Open: l.refused[refusedOpen].Load(), Rate: l.refused[refusedRate].Load(),
		Header: l.refused[refusedHeader].Load(),
	}
}

// Trusts reports whether address belongs to a trusted proxy.
func (l *AddressLimits) Trusts(address netip.Addr) bool { return l.sources.trusts(plain(address)) }

// Guard returns a handler that calls inner while the address of the client is within its limits. If the request comes
// from a trusted proxy, inner sees the client that the proxy names as the remote address.
func (l *AddressLimits) Guard(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address, err := l.sources.of(r)
		if err != nil {
			l.reject(w, r, http.StatusBadRequest, refusedHeader, signal.CodeInvalid, err, 0)
			return
		}
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		proxied := err == nil && plain(peer.Addr()) != address
		if proxied {
			named := *r
			named.RemoteAddr = netip.AddrPortFrom(address, 0).String()
			r = &named
		}
		if source, limited := ratelimit.Source(address); limited {
			if err := l.quota.enter(source, time.Now()); err != nil {
				wait := time.Duration(0)
				if !proxied {
					// The connections of a proxy are not bounded, and all its clients share them.
					wait = l.quota.answerWait(source, time.Now(), maxRequestWait)
				}
				l.reject(w, r, http.StatusTooManyRequests, refusedOpen, signal.CodeRateLimited, err, wait)
				return
			}
			defer l.quota.leave(source)
		}
		inner.ServeHTTP(w, r)
	})
}

// Hold counts a session of an address that outlives its request, until release is called. Such a session counts as an
// open websocket. remote has the form of http.Request.RemoteAddr.
func (l *AddressLimits) Hold(remote string) (release func(), err error) {
	source := SourceOf(remote)
	if !source.IsValid() {
		return func() {}, nil
	}
	if err := l.quota.hold(source, time.Now()); err != nil {
		l.refused[refusedOpen].Add(1)
		return nil, err
	}
	return func() { l.quota.leave(source) }, nil
}

// waited waits for the given duration. waited reports false if done is closed first.
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

// reject counts and logs a refused request. reject answers after the wait, unless the client has gone by then.
func (l *AddressLimits) reject(
	w http.ResponseWriter, r *http.Request, status int, why refusal, code signal.Code, err error, wait time.Duration,
) {
	var exceeded *quotaError
	if errors.As(err, &exceeded) {
		why = exceeded.reason
	}
	l.refused[why].Add(1)
	l.metrics.SignallingError(code)
	l.log.Refused(time.Now(), r.RemoteAddr, "connection refused", zap.Error(err))
	if !waited(r.Context().Done(), wait) {
		return
	}
	SetRetryAfter(w, err)
	http.Error(w, string(code)+": "+err.Error(), status)
}

// SetRetryAfter sets the header Retry-After if err is the error of a limit that recovers with time.
func SetRetryAfter(w http.ResponseWriter, err error) {
	var exceeded *quotaError
	if errors.As(err, &exceeded) {
		w.Header().Set("Retry-After", strconv.Itoa(exceeded.retryAfter()))
	}
}
