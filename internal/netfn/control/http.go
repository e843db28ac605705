package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// maxStatusBytes is the maximum size of a poll: the state of an edge with 8 paths and 64 rules has about 30 kB.
	maxStatusBytes = 64 << 10
	// maxOrderBytes is the maximum size of an order in JSON.
	maxOrderBytes = 4 << 10
)

// Timeouts of connections. Requests have small bodies.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	// writeTimeout exceeds the time for which a request is held.
	writeTimeout = pollHold + 10*time.Second
	idleTimeout  = time.Minute
	// maxHeaderBytes fits a token of 8 KiB.
	maxHeaderBytes = 16 << 10
)

// newServer returns an HTTP server with the limits of this package.
func newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
	}
}

// failure is the body of an answer to a request that failed.
type failure struct {
	Error string `json:"error"`
}

// statuses are the HTTP statuses of the errors of this package, in both directions.
var statuses = []struct {
	err    error
	status int
}{
	{ErrRequest, http.StatusBadRequest},
	{ErrUnauthorized, http.StatusUnauthorized},
	{ErrForbidden, http.StatusForbidden},
	{ErrNoEdge, http.StatusNotFound},
	{ErrOrder, http.StatusUnprocessableEntity},
	{ErrLimited, http.StatusTooManyRequests},
	{ErrFull, http.StatusInsufficientStorage},
}

// refuse answers a request that failed.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			status = s.status
			break
		}
	}
	if status == http.StatusUnauthorized || status == http.StatusTooManyRequests {
		// Strangers do not occupy connections.
		w.Header().Set("Connection", "close")
	}
	reply(w, status, failure{err.Error()})
}

// reply answers with a JSON document.
func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// Fails if the client has disconnected.
	_ = json.NewEncoder(w).Encode(body)
}

// readBody decodes the JSON body of a request. Unknown keys, more than limit bytes and text behind the document are
// errors that wrap ErrRequest.
func readBody(w http.ResponseWriter, r *http.Request, limit int64, into any) error {
	return decode(http.MaxBytesReader(w, r.Body, limit), into)
}

func decode(from io.Reader, into any) error {
	decoder := json.NewDecoder(from)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = errors.New("expected one JSON document")
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		err = fmt.Errorf("the body has more than %d bytes", large.Limit)
	}
	return fmt.Errorf("%w: %w", ErrRequest, err)
}
