package viewer

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func TestHandler(t *testing.T) {
	script := strings.Repeat("let points = 0;\n", 100)
	h := New(fstest.MapFS{
		"index.html":          {Data: []byte("<!doctype html>viewer")},
		"console/index.html":  {Data: []byte("<!doctype html>console")},
		"assets/main-1a2b.js": {Data: []byte(script)},
		"assets/d.wasm":       {Data: []byte{0, 'a', 's', 'm'}},
		"icon.svg":            {Data: []byte("<svg/>")},
		"licenses.txt":        {Data: []byte("MIT")},
	}, nil, false)
	for _, test := range []struct {
		method, path string
		status       int
		kind, body   string
		kept         bool
	}{
		{"GET", "/", 200, "text/html; charset=utf-8", "<!doctype html>viewer", false},
		{"HEAD", "/", 200, "text/html; charset=utf-8", "", false},
		{"GET", "/index.html", 200, "text/html; charset=utf-8", "<!doctype html>viewer", false},
		{"GET", "/console", 200, "text/html; charset=utf-8", "<!doctype html>console", false},
		{"GET", "/console/", 200, "text/html; charset=utf-8", "<!doctype html>console", false},
		{"GET", "/assets/main-1a2b.js", 200, "text/javascript; charset=utf-8", script, true},
		{"GET", "/assets/d.wasm", 200, "application/wasm", "\x00asm", true},
		{"GET", "/icon.svg", 200, "image/svg+xml", "<svg/>", false},
		{"GET", "/licenses.txt", 200, "text/plain; charset=utf-8", "MIT", false},
		{"GET", "/nothing", 404, "", "", false},
		{"GET", "/../handler.go", 404, "", "", false},
		{"GET", "/assets", 404, "", "", false},
		{"POST", "/", 405, "", "", false},
	} {
		for _, encoding := range []string{"", "gzip, br"} {
			recorder := httptest.NewRecorder()
			request := httptest.NewRequest(test.method, test.path, nil)
			request.Header.Set("Accept-Encoding", encoding)
			h.ServeHTTP(recorder, request)
			if recorder.Code != test.status {
				t.Errorf("%s %s: status %d, expected %d", test.method, test.path, recorder.Code, test.status)
			}
			if test.status != http.StatusOK {
				continue
			}
			header := recorder.Header()
			if header.Get("Content-Type") != test.kind || header.Get("X-Content-Type-Options") != "nosniff" ||
				strings.Contains(header.Get("Cache-Control"), "immutable") != test.kept {
				t.Errorf("%s %s: headers are %v", test.method, test.path, header)
			}
			if got := read(t, recorder); got != test.body {
				t.Errorf("%s %s: body is %.40q, expected %.40q", test.method, test.path, got, test.body)
			}
		}
	}
}

// policyOf returns the content security policy of a path, without origins that may embed the page.
func policyOf(path string, origins ...string) (all, ancestors string) {
	recorder := httptest.NewRecorder()
	files := fstest.MapFS{"index.html": {Data: []byte("x")}, "console/index.html": {Data: []byte("x")}}
	New(files, origins, false).ServeHTTP(recorder, httptest.NewRequest("GET", path, nil))
	all, ancestors, _ = strings.Cut(recorder.Header().Get("Content-Security-Policy"), "frame-ancestors ")
	return all, ancestors
}

// TestAncestors: only the configured origins may embed the viewer, and none the console.
func TestAncestors(t *testing.T) {
	for _, test := range []struct {
		path    string
		origins []string
		want    string
	}{
		{"/", nil, "'none'"},
		{"/", []string{"https://app.example.org", "http://localhost:5173"},
			"https://app.example.org http://localhost:5173"},
		{"/index.html", []string{"*"}, "*"},
		{"/console", []string{"https://app.example.org"}, "'none'"},
		{"/console/", []string{"*"}, "'none'"},
		{"/console/index.html", []string{"*"}, "'none'"},
		{"//console", []string{"*"}, "'none'"},
	} {
		if _, got := policyOf(test.path, test.origins...); got != test.want {
			t.Errorf("%s with %q: frame-ancestors %s, expected %s", test.path, test.origins, got, test.want)
		}
	}
}

// TestPolicy checks the content security policy: nothing inline, no eval, nothing from other servers.
func TestPolicy(t *testing.T) {
	got, _ := policyOf("/", "https://app.example.org")
	for _, forbidden := range []string{"unsafe-inline", "'unsafe-eval'", "http:", "https:", "*"} {
		if strings.Contains(got, forbidden) {
			t.Errorf("the policy allows %s: %s", forbidden, got)
		}
	}
	for _, needed := range []string{"default-src 'none'", "base-uri 'none'"} {
		if !strings.Contains(got, needed) {
			t.Errorf("the policy lacks %s: %s", needed, got)
		}
	}
}

// TestPolicyInACluster: the viewer may connect to other nodes, other pages only to their own.
func TestPolicyInACluster(t *testing.T) {
	files := fstest.MapFS{"index.html": {Data: []byte("x")}, "console/index.html": {Data: []byte("x")}}
	h := New(files, nil, true)
	for path, want := range map[string]string{
		"/": "connect-src 'self' ws: wss:; ", "/console": "connect-src 'self'; ",
	} {
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, httptest.NewRequest("GET", path, nil))
		if got := recorder.Header().Get("Content-Security-Policy"); !strings.Contains(got, want) {
			t.Errorf("the policy of %s is %s, expected %s", path, got, want)
		}
	}
}

func read(t *testing.T, recorder *httptest.ResponseRecorder) string {
	t.Helper()
	var from io.Reader = recorder.Body
	if recorder.Header().Get("Content-Encoding") == "gzip" && recorder.Body.Len() > 0 {
		z, err := gzip.NewReader(recorder.Body)
		if err != nil {
			t.Fatal(err)
		}
		from = z
	}
	body, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
