package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	// maxAnswerBytes is the size of the states of maxEdges edges, with as much again for their orders.
	maxAnswerBytes = 2 * maxEdges * maxStatusBytes
	// maxTokenFileBytes is the maximum size of a token.
	maxTokenFileBytes = 8 << 10
	// dialTimeout is the time limit for a connection: TCP sends its first packet again after 1 s and 3 s.
	dialTimeout = 5 * time.Second
)

// requester sends requests with JSON bodies.
type requester struct {
	http *http.Client
	// base is the URL before the path, without a slash at the end.
	base string
	// token is the file of the token; "" sends none.
	tokenFile string
}

// newRemote returns a requester for a controller.
func newRemote(address, tokenFile string) (requester, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return requester{}, fmt.Errorf("%w: the controller is %.80q, expected https://HOST:PORT", ErrRequest, address)
	}
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     idleTimeout / 2,
		MaxIdleConns:        2,
	}
	return requester{
		http: &http.Client{Transport: transport, CheckRedirect: noRedirect},
		base: strings.TrimSuffix(address, "/"), tokenFile: tokenFile,
	}, nil
}

// noRedirect keeps the token from other hosts.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// newSocket returns a requester for the unix socket of an edge.
func newSocket(path string) requester {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "unix", path)
	}
	return requester{
		http: &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}},
		base: "http://edge",
	}
}

// do sends a request and decodes the answer, if into is not nil. The error of a failed request wraps the error of this
// package that the status means, and ErrUnreachable if there is no answer.
func (r requester) do(ctx context.Context, method, path string, body, into any) error {
	request, err := r.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	response, err := r.http.Do(request)
	if err != nil {
		// The error of the transport repeats the URL.
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer func() { _ = response.Body.Close() }()
	limited := io.LimitReader(response.Body, maxAnswerBytes)
	if response.StatusCode >= http.StatusMultipleChoices {
		// If a request is cancelled, net/http prefers the answer of a server that notices the end of the connection.
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		return failureOf(response.StatusCode, limited)
	}
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(limited).Decode(into); err != nil {
		return fmt.Errorf("%w: the answer is not JSON: %w", ErrUnreachable, err)
	}
	return nil
}

func (r requester) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var reader io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			panic("requests are plain data: " + err.Error())
		}
		reader = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, r.base+path, reader)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if r.tokenFile != "" {
		token, err := readToken(r.tokenFile)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return request, nil
}

// failureOf returns the error that an answer describes.
func failureOf(status int, body io.Reader) error {
	var f failure
	if err := json.NewDecoder(body).Decode(&f); err != nil || f.Error == "" {
		f.Error = http.StatusText(status)
	}
	for _, s := range statuses {
		if s.status != status {
			continue
		}
		// The text of the other side begins with the text of the same error.
		return fmt.Errorf("%w%s", s.err, strings.TrimPrefix(clip(f.Error), s.err.Error()))
	}
	return fmt.Errorf("status %d: %s", status, clip(f.Error))
}

// readToken reads a token file: one line.
func readToken(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxTokenFileBytes+1))
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || len(data) > maxTokenFileBytes || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("%w: %s has %d bytes, expected one line of 1 to %d bytes", ErrRequest, path, len(data),
			maxTokenFileBytes)
	}
	return token, nil
}

// Socket is a client of an edge on this host.
type Socket struct{ requests requester }

// NewSocket returns a client for the unix socket.
func NewSocket(path string) Socket { return Socket{newSocket(path)} }

// Status returns the state of the edge.
func (s Socket) Status(ctx context.Context) (json.RawMessage, error) {
	var status json.RawMessage
	err := s.requests.do(ctx, http.MethodGet, "/v1/status", nil, &status)
	return status, err
}

// Order carries out an order.
func (s Socket) Order(ctx context.Context, o Order) error {
	return s.requests.do(ctx, http.MethodPost, "/v1/orders", o, nil)
}

// Detach ends the edge, and returns when nothing of it is left.
func (s Socket) Detach(ctx context.Context) error {
	return s.requests.do(ctx, http.MethodPost, "/v1/detach", nil, nil)
}

// Operator is a client of a controller, with the token of an operator.
type Operator struct{ requests requester }

// NewOperator returns a client for the controller at the address, https://HOST:PORT.
func NewOperator(address, tokenFile string) (Operator, error) {
	requests, err := newRemote(address, tokenFile)
	return Operator{requests}, err
}

// Edges returns the states of all edges.
func (o Operator) Edges(ctx context.Context) ([]EdgeState, error) {
	var list edgeList
	err := o.requests.do(ctx, http.MethodGet, "/v1/edges", nil, &list)
	return list.Edges, err
}

// Edge returns the state of one edge.
func (o Operator) Edge(ctx context.Context, name string) (EdgeState, error) {
	var state EdgeState
	err := o.requests.do(ctx, http.MethodGet, edgePath(name), nil, &state)
	return state, err
}

// Order sends an order for an edge and returns its state: Applied, or Pending if the edge is not connected or has not
// answered yet.
func (o Operator) Order(ctx context.Context, edge string, order Order) (string, error) {
	var made outcome
	err := o.requests.do(ctx, http.MethodPost, edgePath(edge)+"/orders", order, &made)
	return made.State, err
}

func edgePath(name string) string { return "/v1/edges/" + url.PathEscape(name) }
