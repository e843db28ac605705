package webhook

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a request.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// Errors of requests. The texts contain no part of a signature.
var (
	// ErrSignature: no signature of the request is by one of the keys.
	ErrSignature = errors.New("webhook with a wrong signature")
	// ErrTimestamp: the delivery is too old, or from the future. A repeated delivery has the time of its repetition.
	ErrTimestamp = errors.New("webhook of another time")
	// ErrRequest: a header is missing, or the body is too large or no event.
	ErrRequest = errors.New("invalid webhook request")
)

const (
	// Tolerance is the accepted difference between the time of a delivery and the clock of its receiver. Receivers must
	// remember the ids of events for twice that time to recognise replayed requests.
	Tolerance = 5 * time.Minute
	// MaxBytes bounds the body: names of 128 bytes, which JSON may escape to six times that length, need 4 kB.
	MaxBytes = 64 << 10
	// maxSignatures bounds the signatures of one request: a server signs with each of its keys.
	maxSignatures = 8
)

// Receiver verifies requests. A Receiver is immutable and safe for concurrent use.
type Receiver struct{ keys []Key }

// NewReceiver returns a receiver of requests that are signed by one of the keys. Texts of keys have the form of
// ParseKey. Use two keys while the server's key changes.
func NewReceiver(keys ...string) (*Receiver, error) {
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: there is none, expected at least one", ErrKey)
	}
	r := &Receiver{}
	for _, text := range keys {
		key, err := ParseKey(text)
		if err != nil {
			return nil, err
		}
		r.keys = append(r.keys, key)
	}
	return r, nil
}

// Event reads, verifies and decodes a request. Answer the request with status 200 to 299, and with another status to
// have the delivery repeated. The error wraps ErrSignature, ErrTimestamp or ErrRequest, or is that of the connection.
func (r *Receiver) Event(request *http.Request) (Event, error) {
	body, err := io.ReadAll(io.LimitReader(request.Body, MaxBytes+1))
	if err != nil {
		return Event{}, fmt.Errorf("read webhook: %w", err)
	}
	if err := r.Verify(request.Header, body, time.Now()); err != nil {
		return Event{}, err
	}
	var e Event
	if err := json.Unmarshal(body, &e); err != nil {
		return Event{}, fmt.Errorf("%w: the body is no event: %w", ErrRequest, err)
	}
	if id := request.Header.Get(HeaderID); e.ID != id {
		return Event{}, fmt.Errorf("%w: the body has the id %.40q, the header %.40q", ErrRequest, e.ID, id)
	}
	return e, nil
}

// Verify verifies the headers and the body of a request at the time now. Signatures are compared in constant time.
func (r *Receiver) Verify(header http.Header, body []byte, now time.Time) error {
	if len(body) > MaxBytes {
		return fmt.Errorf("%w: the body has more than %d bytes", ErrRequest, MaxBytes)
	}
	id, stamp, signatures := header.Get(HeaderID), header.Get(HeaderTimestamp), header.Get(HeaderSignature)
	if id == "" || stamp == "" || signatures == "" {
		return fmt.Errorf("%w: expected the headers webhook-id, webhook-timestamp and webhook-signature", ErrRequest)
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: webhook-timestamp is %.40q, expected seconds since 1970", ErrRequest, stamp)
	}
	if !r.signed(id, stamp, signatures, body) {
		return ErrSignature
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > Tolerance || age < -Tolerance {
		return fmt.Errorf("%w: it was sent %v before this clock, expected %v at most", ErrTimestamp,
			age.Round(time.Second), Tolerance)
	}
	return nil
}

// signed reports whether one of the signatures, which are separated by spaces, is by one of the keys. Signatures of
// other versions are ignored.
func (r *Receiver) signed(id, stamp, signatures string, body []byte) bool {
	n := 0
	for signature := range strings.FieldsSeq(signatures) {
		if n++; n > maxSignatures {
			break
		}
		text, found := strings.CutPrefix(signature, version+",")
		if !found {
			continue
		}
		sum, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			continue
		}
		for _, key := range r.keys {
			if hmac.Equal(sum, key.sum(id, stamp, body)) {
				return true
			}
		}
	}
	return false
}
