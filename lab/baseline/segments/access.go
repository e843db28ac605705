package segments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/volsfu/volsfu/lab/baseline/tcp"
	"github.com/volsfu/volsfu/lab/carriage"
)

// ErrAnswer reports an unexpected answer of a server. The wrapping error has the answer.
var ErrAnswer = errors.New("unexpected answer")

// maxAnswer bounds a text.
const maxAnswer = 4096

// maxIdle is enough to keep a connection open for every stream: 15 tiles at several qualities.
const maxIdle = 256

// access is a client's access to an origin over persistent connections, which are counted together. Its methods are
// safe for concurrent use.
type access struct {
	address string
	http    *http.Client
	counts  tcp.Counts

	mu    sync.Mutex
	named string
}

// newAccess opens no connection before the first request.
func newAccess(options tcp.Options, address string) *access {
	a := &access{address: address}
	a.http = &http.Client{Transport: &http.Transport{
		MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, DisableCompression: true,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			conn, err := options.Dial(ctx, address)
			if err != nil {
				return nil, err
			}
			a.mu.Lock()
			a.named = tcp.Congestion(conn)
			a.mu.Unlock()
			return counted{conn, &a.counts}, nil
		},
	}}
	return a
}

// counted is a connection that counts bytes.
type counted struct {
	net.Conn
	counts *tcp.Counts
}

// Read implements net.Conn.
func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.counts.Received.Add(int64(n))
	return n, err
}

// Write implements net.Conn.
func (c counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.counts.Sent.Add(int64(n))
	return n, err
}

// congestion returns the kernel's name of the latest connection's congestion control.
func (a *access) congestion() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.named
}

// url returns the address of a peer's resource; parts are those of the origin's paths.
func (a *access) url(peer string, parts ...any) string {
	url := "http://" + a.address + "/" + peer
	for _, part := range parts {
		url += fmt.Sprint("/", part)
	}
	return url
}

// request sends a request without a body.
func (a *access) request(ctx context.Context, method, url string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := a.http.Do(r)
	if err != nil {
		return nil, err
	}
	switch response.StatusCode {
	case http.StatusOK:
		return response, nil
	case http.StatusNotFound:
		err = errGone
	case http.StatusGone:
		err = carriage.ErrEnded
	default:
		err = fmt.Errorf("%w: %s to %s", ErrAnswer, response.Status, url)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer))
	_ = response.Body.Close()
	return nil, err
}

// put uploads a body, and returns once the origin has answered.
func (a *access) put(ctx context.Context, url string, body io.Reader) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, url, body)
	if err != nil {
		return err
	}
	response, err := a.http.Do(r)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer))
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s to %s", ErrAnswer, response.Status, url)
	}
	return nil
}
