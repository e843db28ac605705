package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Media types of patches and objects.
const (
	objectType = "application/json"
	mergeType  = "application/merge-patch+json"
)

// requestPatience bounds one request.
const requestPatience = 30 * time.Second

// responseBytes bounds a response.
const responseBytes = 16 << 20

// StatusError is the refusal of a request by the server of the API.
type StatusError struct {
	// Code is the status of HTTP.
	Code    int
	Message string
}

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the API refuses with %d: %s", e.Code, e.Message)
}

// Refused reports whether an error is a refusal with this code.
func Refused(err error, code int) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == code
}

// Client sends requests to the server of the API. It is safe for concurrent use.
type Client struct {
	server, token string
	http          *http.Client
}

// newClient returns a client that trusts the certificates in a PEM file.
func newClient(server, token string, certificates []byte) (*Client, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(certificates) {
		return nil, errors.New("the server of the API has no certificate")
	}
	return &Client{server: server, token: token, http: &http.Client{Timeout: requestPatience,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}}, nil
}

// Get reads an object or a list.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	return c.send(ctx, http.MethodGet, path, "", nil, into)
}

// Create creates an object.
func (c *Client) Create(ctx context.Context, path string, object any) error {
	return c.send(ctx, http.MethodPost, path, objectType, object, nil)
}

// Merge changes the fields of an object that the patch has.
func (c *Client) Merge(ctx context.Context, path string, patch any) error {
	return c.send(ctx, http.MethodPatch, path, mergeType, patch, nil)
}

// Delete deletes an object.
func (c *Client) Delete(ctx context.Context, path string, options any) error {
	return c.send(ctx, http.MethodDelete, path, objectType, options, nil)
}

// Evict asks for the eviction of a pod, as kubectl drain does. The error is a StatusError with code 429 if a
// PodDisruptionBudget refuses.
func (c *Client) Evict(ctx context.Context, namespace, pod string) error {
	return c.Create(ctx, podPath(namespace, pod)+"/eviction", map[string]any{"apiVersion": "policy/v1",
		"kind": "Eviction", "metadata": Metadata{Name: pod, Namespace: namespace}})
}

// Cordon keeps new pods from a host, as kubectl cordon does.
func (c *Client) Cordon(ctx context.Context, host string) error {
	return c.Merge(ctx, nodePath(host), map[string]any{"spec": map[string]any{"unschedulable": true}})
}

// Paths of objects.
func podsPath(namespace string) string      { return "/api/v1/namespaces/" + namespace + "/pods" }
func podPath(namespace, name string) string { return podsPath(namespace) + "/" + name }
func nodePath(name string) string           { return "/api/v1/nodes/" + name }

func (c *Client) send(ctx context.Context, method, path, contentType string, body, into any) error {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, content)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", contentType)
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, responseBytes))
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		status := &StatusError{Code: response.StatusCode, Message: string(text)}
		var said struct{ Message string }
		if json.Unmarshal(text, &said) == nil && said.Message != "" {
			status.Message = said.Message
		}
		return fmt.Errorf("%s %s: %w", method, path, status)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}
