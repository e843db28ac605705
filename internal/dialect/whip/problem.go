package whip

import (
	"encoding/json"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/signal"
)

// retryAfter is the time in seconds after which a client may try again if a participant publishes nothing yet, or if
// the server is about to stop.
const retryAfter = "2"

// problemOf returns the problem of an error of the room.
func problemOf(e *signal.Error) *problem { return &problem{statusOf(e.Code), e.Code, e.Message} }

// statusOf returns the HTTP status of an error. A participant that publishes nothing is a conflict
// (draft-ietf-wish-whep-03 section 4.2).
func statusOf(code signal.Code) int {
	switch code {
	case signal.CodeUnauthorized:
		return http.StatusUnauthorized
	case signal.CodeForbidden, signal.CodeKicked, signal.CodeRevoked:
		return http.StatusForbidden
	case signal.CodeNotFound:
		return http.StatusNotFound
	case signal.CodeIdentityTaken:
		return http.StatusConflict
	case signal.CodeLimit, signal.CodeRateLimited:
		return http.StatusTooManyRequests
	case signal.CodeDraining, signal.CodeClosed:
		return http.StatusServiceUnavailable
	case signal.CodeInvalid, signal.CodeMalformed:
		return http.StatusBadRequest
	case signal.CodeInvalidSDP:
		return http.StatusNotAcceptable
	default:
		return http.StatusInternalServerError
	}
}

// details is the body of a refusal (RFC 9457). Code is that of signalling v1.
type details struct {
	Type   string      `json:"type"`
	Title  string      `json:"title"`
	Status int         `json:"status"`
	Detail string      `json:"detail"`
	Code   signal.Code `json:"code"`
}

// refuse counts and logs a refused request, and answers it after the delay of its address.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, protocol string, p *problem) {
	s.metrics.SignallingError(p.code)
	s.log.Refused(time.Now(), r.RemoteAddr, "WHIP or WHEP request refused", zap.String("protocol", protocol),
		zap.String("code", string(p.code)), zap.String("reason", p.detail))
	if !s.delays.Wait(r.Context().Done(), r.RemoteAddr) {
		return
	}
	if protocol == protocolWHEP && p.status == http.StatusNotFound {
		p.status = http.StatusConflict
	}
	switch p.status {
	case http.StatusConflict, http.StatusServiceUnavailable, http.StatusTooManyRequests:
		if w.Header().Get("Retry-After") == "" {
			w.Header().Set("Retry-After", retryAfter)
		}
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.status)
	// The client has gone if this fails.
	_ = json.NewEncoder(w).Encode(details{"about:blank", http.StatusText(p.status), p.status, p.detail, p.code})
}
