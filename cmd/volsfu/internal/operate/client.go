// Package operate has the commands that ask a running server, through the operators' API (docs/operations.md).
package operate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/volsfu/volsfu/internal/admin"
	"github.com/volsfu/volsfu/internal/authority"
	"github.com/volsfu/volsfu/internal/config"
)

// Sentinels of the commands' errors, which decide the exit status.
var (
	// ErrUnreachable: no volsfu answers at the address.
	ErrUnreachable = errors.New("the server does not answer")
	// ErrRefused: the server does not accept the token, or needs one.
	ErrRefused = errors.New("the server refuses the request")
	// ErrAbsent: the server does not have the named room or participant.
	ErrAbsent = errors.New("not found")
	// ErrAnswer: the server failed, or the answer is not that of volsfu.
	ErrAnswer = errors.New("unexpected answer")
	// errServer is wrapped with the value of --server.
	errServer = errors.New("expected http://HOST:PORT or https://HOST:PORT")
)

const (
	// answerTimeout bounds one request. The server collects the state of its rooms within 2 s.
	answerTimeout = 10 * time.Second
	// maxAnswer bounds an answer in bytes: 10,000 participants with 1,000 slots each take about 2 GB, of which no one
	// reads a table.
	maxAnswer = 256 << 20
)

// Client sends requests to the operators' API of one server.
type Client struct {
	// server, token and authority are the values of the flags.
	server, token, authority string
}

// Flags registers the flags of the server.
func (c *Client) Flags(f *pflag.FlagSet) {
	f.StringVar(&c.server, "server", "http://127.0.0.1:9090", "the operators' listener, or with a token the clients' "+
		"listener: http://HOST:PORT or https://HOST:PORT")
	f.StringVar(&c.token, "token", "", "token with the admin grant; the default is the environment variable "+
		config.TokenVariable+", which other users of this host cannot read")
	f.StringVar(&c.authority, "ca", "", "PEM file with the certificate authorities to trust in place of the system's")
}

// segment returns a name as one segment of a path. Dots are escaped: URL.JoinPath removes the segments "." and "..",
// and the request would have an effect on something else.
func segment(name string) string { return strings.ReplaceAll(url.PathEscape(name), ".", "%2E") }

// request sends a request for a path below the API, and returns the body of the answer.
func (c *Client) request(ctx context.Context, method, path string, query url.Values) ([]byte, error) {
	address, err := url.Parse(c.server)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return nil, fmt.Errorf("--server is %q, %w", c.server, errServer)
	}
	address = address.JoinPath(admin.APIPath, path)
	address.RawQuery = query.Encode()
	trust, err := authority.Trust(c.authority)
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, address.String(), nil)
	if err != nil {
		return nil, err
	}
	if token := cmp.Or(c.token, os.Getenv(config.TokenVariable)); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: trust, Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	// A redirect would send the token to another server.
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrAnswer, maxAnswer)
	}
	return body, failureOf(response, body)
}

// failureOf returns the error of an answer, nil for success.
func failureOf(response *http.Response, body []byte) error {
	if response.StatusCode/100 == 2 {
		return nil
	}
	var answer struct{ Error string }
	if json.Unmarshal(body, &answer) != nil || answer.Error == "" {
		return fmt.Errorf("%w: %s from %s, expected the operators' API of volsfu", ErrAnswer, response.Status,
			response.Request.URL.Redacted())
	}
	reason := printable(answer.Error)
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w: %s", ErrRefused, reason)
	case http.StatusNotFound:
		return fmt.Errorf("%w: %s", ErrAbsent, reason)
	default:
		return fmt.Errorf("%w: %s: %s", ErrAnswer, response.Status, reason)
	}
}

// get decodes an answer, and returns its text with indentation, too.
func (c *Client) get(ctx context.Context, path string, into any) (text []byte, err error) {
	body, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	var indented bytes.Buffer
	if err := errors.Join(json.Unmarshal(body, into), json.Indent(&indented, body, "", "  ")); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return indented.Bytes(), nil
}
