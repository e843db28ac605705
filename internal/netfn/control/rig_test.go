package control

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/test/certificate"
	"github.com/volsfu/volsfu/test/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shortHold is the time for which controllers of tests hold requests.
const shortHold = 50 * time.Millisecond

// recorder is an edge with the rule "conference" that records its orders.
type recorder struct {
	mu       sync.Mutex
	orders   []Order
	detached bool
}

func (r *recorder) Status() (any, error) { return map[string]int{"orders": len(r.applied())}, nil }

func (r *recorder) Apply(o Order) error {
	if o.Rule != "" && o.Rule != "conference" {
		return errUnknownRule{o.Rule}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.orders = append(r.orders, o)
	return nil
}

type errUnknownRule struct{ rule string }

func (e errUnknownRule) Error() string { return "order refused: there is no rule " + e.rule }
func (e errUnknownRule) Unwrap() error { return ErrOrder }

func (r *recorder) Detach(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.detached = true
	return nil
}

func (r *recorder) applied() []Order {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Order{}, r.orders...)
}

// rig is a controller with its certificate and keys.
type rig struct {
	t      *testing.T
	config ControllerConfig
	roots  *x509.CertPool
	*Controller
}

// newRig starts a controller on a port of its own.
func newRig(t *testing.T) *rig {
	t.Helper()
	files := certificate.New(t, "127.0.0.1")
	keys := auth.DefaultConfig()
	keys.Keys = []string{"first:" + strings.Repeat("k", auth.MinSecretBytes)}
	ring, err := auth.NewKeyring(keys)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, config: ControllerConfig{
		Listen: "127.0.0.1:0", TLSCert: files.Certificate, TLSKey: files.Key,
		State: filepath.Join(t.TempDir(), "orders.json"), Keys: ring,
	}, roots: files.Pool}
	r.start()
	r.config.Listen = r.Address().String()
	t.Cleanup(func() { _ = r.Stop() })
	return r
}

// start starts the controller, again at the same address.
func (r *rig) start() {
	r.t.Helper()
	var err error
	if r.Controller, err = startController(r.config, shortHold, zap.NewNop()); err != nil {
		r.t.Fatal(err)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// token mints a token and returns its file.
func (r *rig) token(claims auth.Claims) string {
	r.t.Helper()
	if claims.Expires.IsZero() {
		claims.Expires = time.Now().Add(time.Hour)
	}
	token, err := r.config.Keys.Mint("", claims, claims.Expires.Add(-time.Hour))
	if err != nil {
		r.t.Fatal(err)
	}
	path := filepath.Join(r.t.TempDir(), "token")
	write(r.t, path, []byte(token+"\n"))
	return path
}

// url is the address of the controller.
func (r *rig) url() string { return "https://" + r.config.Listen }

// trust makes a client trust the certificate of the rig, and closes the client's connections at the end.
func (r *rig) trust(requests requester) requester {
	transport := requests.http.Transport.(*http.Transport)
	transport.TLSClientConfig = &tls.Config{RootCAs: r.roots}
	r.t.Cleanup(transport.CloseIdleConnections)
	return requests
}

// operator returns a client with the token.
func (r *rig) operator(claims auth.Claims) Operator {
	r.t.Helper()
	o, err := NewOperator(r.url(), r.token(claims))
	if err != nil {
		r.t.Fatal(err)
	}
	return Operator{r.trust(o.requests)}
}

// connect runs the connection of an edge until the returned function is called or the test ends.
func (r *rig) connect(name string, edge Edge) (*Link, func()) {
	r.t.Helper()
	link, err := NewLink(r.url(), r.token(auth.Claims{Identity: name, Edge: true}), name, edge, zap.NewNop())
	if err != nil {
		r.t.Fatal(err)
	}
	link.requests = r.trust(link.requests)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { link.Run(ctx) })
	end := func() {
		cancel()
		running.Wait()
	}
	r.t.Cleanup(end)
	wait.Until(r.t, "the edge is connected", func() bool { return link.State().Connected })
	return link, end
}
