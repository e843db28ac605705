package admin

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reasons is a readiness with fixed reasons.
type reasons []string

func (r reasons) NotReady() []string { return r }

func registry(t *testing.T) *prometheus.Registry {
	t.Helper()
	r := prometheus.NewRegistry()
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "volsfu_rooms", Help: "Rooms."})
	gauge.Set(3)
	if err := r.Register(gauge); err != nil {
		t.Fatal(err)
	}
	return r
}

func endpoints(t *testing.T, checks ...Readiness) Endpoints {
	return Endpoints{
		Metrics: registry(t), API: http.NotFoundHandler(), CommandLine: []string{"volsfu", "serve"}, Checks: checks,
		AllowedHosts: []string{"ops.example.org"},
	}
}

// TestPagesOfOthers: no page of another server can read the listener, by its own name or by the listener's address;
// programs can under every name.
func TestPagesOfOthers(t *testing.T) {
	const rebound, chrome = "evil.example.net:9090", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"
	handler := Handler(endpoints(t))
	for _, test := range []struct {
		what, host string
		headers    map[string]string
		admitted   bool
	}{
		{"Prometheus by address", "192.0.2.4:9090", map[string]string{"User-Agent": "Prometheus/3.5.0"}, true},
		{"Prometheus by the name of a service", "volsfu:9090", map[string]string{"User-Agent": "Prometheus/3.5.0"},
			true},
		{"Prometheus by a long name", "volsfu.media.svc.cluster.local:9090",
			map[string]string{"User-Agent": "Prometheus/3.5.0"}, true},
		{"a probe without a port", "192.0.2.4", map[string]string{"User-Agent": "kube-probe/1.34"}, true},
		{"a browser by address", "127.0.0.1:9090", map[string]string{"User-Agent": chrome, "Accept-Language": "de"},
			true},
		{"a browser by an address of IPv6", "[2001:db8::4]:9090", map[string]string{"Accept-Language": "de"}, true},
		{"a browser by localhost", "localhost:9090",
			map[string]string{"Accept-Language": "de", "Sec-Fetch-Site": "none"},
			true},
		{"a browser by a configured name", "Ops.Example.org:9090", map[string]string{"Accept-Language": "de"}, true},
		{"a page of its own", "127.0.0.1:9090",
			map[string]string{"Origin": "http://127.0.0.1:9090", "Sec-Fetch-Site": "same-origin"}, true},
		{"a link of another page", "127.0.0.1:9090",
			map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate",
				"Sec-Fetch-Dest": "document"}, true},
		{"a page that is rebound", rebound, map[string]string{"User-Agent": chrome, "Accept-Language": "de"}, false},
		{"one that hides its browser", rebound,
			map[string]string{"User-Agent": "Prometheus/3.5.0", "Accept-Language": ""},
			false},
		{"one of a browser with few headers", rebound, map[string]string{"User-Agent": chrome}, false},
		{"a page of another origin", "127.0.0.1:9090", map[string]string{"Origin": "https://evil.example.net"}, false},
		{"a page of no origin", "127.0.0.1:9090", map[string]string{"Origin": "null"}, false},
		{"an image of another page", "127.0.0.1:9090",
			map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, false},
		{"a page of another port", "localhost:9090",
			map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, false},
		{"a frame in another page", "127.0.0.1:9090",
			map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
			false},
	} {
		for _, path := range []string{"/metrics", "/healthz", "/readyz", "/debug/pprof/", "/debug/pprof/cmdline"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = test.host
			for name, value := range test.headers {
				r.Header.Set(name, value)
			}
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, r)
			if want := map[bool]int{true: http.StatusOK,
				false: http.StatusForbidden}[test.admitted]; recorder.Code != want {
				t.Errorf("%s, %s: status %d, expected %d", test.what, path, recorder.Code, want)
			}
		}
	}
}

func TestHandler(t *testing.T) {
	for _, test := range []struct {
		name, method, path string
		checks             []Readiness
		status             int
		// text is part of the body, or the whole body if whole is set.
		text  string
		whole bool
	}{
		{"metrics", "GET", "/metrics", nil, 200, "volsfu_rooms 3\n", false},
		{"alive", "GET", "/healthz", nil, 200, "ok\n", true},
		{"alive while draining", "GET", "/healthz", []Readiness{reasons{"draining"}}, 200, "ok\n", true},
		{"ready", "GET", "/readyz", []Readiness{reasons{}, reasons(nil)}, 200, "ok\n", true},
		{"ready without checks", "GET", "/readyz", nil, 200, "ok\n", true},
		{"starting", "GET", "/readyz", []Readiness{reasons{"starting"}}, 503, "starting\n", true},
		{"several reasons", "GET", "/readyz", []Readiness{reasons{"draining"}, reasons{}, reasons{"no media port"}},
			503, "draining\nno media port\n", true},
		{"head", "HEAD", "/readyz", []Readiness{reasons{"starting"}}, 503, "", false},
		{"post", "POST", "/healthz", nil, 405, "", false},
		{"profiles", "GET", "/debug/pprof/", nil, 200, "goroutine", false},
		{"a profile", "GET", "/debug/pprof/goroutine?debug=1", nil, 200, "goroutine profile:", false},
		{"command line", "GET", "/debug/pprof/cmdline", nil, 200, "volsfu\x00serve\n", true},
		{"symbols", "POST", "/debug/pprof/symbol", nil, 200, "num_symbols", false},
		{"nothing else", "GET", "/", nil, 404, "", false},
		{"nothing below", "GET", "/metrics/x", nil, 404, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			Handler(endpoints(t, test.checks...)).ServeHTTP(recorder, httptest.NewRequest(test.method, test.path, nil))
			body := recorder.Body.String()
			if recorder.Code != test.status || !strings.Contains(body, test.text) || test.whole && body != test.text {
				t.Errorf("status %d, body %.200q, expected %d, %q", recorder.Code, body, test.status, test.text)
			}
		})
	}
}

func get(ctx context.Context, url string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

func TestServer(t *testing.T) {
	s, err := Start("127.0.0.1:0", Handler(endpoints(t)))
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + s.Address().String()
	if status, body, err := get(t.Context(), url+"/healthz"); status != 200 || body != "ok\n" || err != nil {
		t.Errorf("got %d, %q, %v", status, body, err)
	}
	if _, err := Start(s.Address().String(), http.NotFoundHandler()); err == nil ||
		!strings.Contains(err.Error(), "listen for operators") {
		t.Errorf("error is %v, expected that the port is taken", err)
	}
	for range 2 {
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := get(t.Context(), url+"/healthz"); err == nil {
		t.Error("the server answers after Stop")
	}
}

// TestStopWaitsForRequests checks that requests in progress are answered when the server stops.
func TestStopWaitsForRequests(t *testing.T) {
	started, finish := make(chan struct{}), make(chan struct{})
	s, err := Start("127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(started)
		<-finish
		_, _ = io.WriteString(w, "done")
	}))
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan string, 1)
	go func() {
		_, body, err := get(context.Background(), "http://"+s.Address().String())
		if err != nil {
			body = err.Error()
		}
		answered <- body
	}()
	<-started
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(context.Background()) }()
	// The serving goroutine ends when no new connections are accepted, before the request has.
	<-s.Ended()
	close(finish)
	if body := <-answered; body != "done" {
		t.Errorf("got %q, expected the request to finish", body)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestStopCutsOff: a request that does not end does not delay the process.
func TestStopCutsOff(t *testing.T) {
	started := make(chan struct{})
	s, err := Start("127.0.0.1:0", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
	}))
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, _, err := get(context.Background(), "http://"+s.Address().String())
		answered <- err
	}()
	<-started
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
	if err := <-answered; err == nil {
		t.Error("a request without end was answered")
	}
}

// TestFailure: a broken listener ends the server with its error.
func TestFailure(t *testing.T) {
	s, err := Start("127.0.0.1:0", http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.listener.Close(); err != nil {
		t.Fatal(err)
	}
	<-s.Ended()
	if err := s.Stop(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("error is %v, expected that the listener is closed", err)
	}
}

func TestConfig(t *testing.T) {
	if host, _, err := net.SplitHostPort(DefaultConfig().Listen); err != nil || !net.ParseIP(host).IsLoopback() {
		t.Errorf("the default listens on %q, expected loopback", DefaultConfig().Listen)
	}
	for listen, valid := range map[string]bool{"": true, ":9090": true, "[::1]:9090": true, "localhost:http": true,
		"9090": false, "127.0.0.1": false, "127.0.0.1:": false} {
		if err := (Config{Listen: listen}).Validate(); (err == nil) != valid || err != nil &&
			!errors.Is(err, ErrConfig) {
			t.Errorf("%q: error is %v", listen, err)
		}
	}
	for host, valid := range map[string]bool{"ops.example.org": true, "": false, "ops:9090": false,
		"http://ops": false} {
		c := Config{Listen: ":9090", AllowedHosts: []string{host}}
		if err := c.Validate(); (err == nil) != valid || err != nil && !errors.Is(err, ErrConfig) {
			t.Errorf("host %q: error is %v", host, err)
		}
	}
}
