package viewer

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"testing"
	"testing/fstest"
)

// FuzzPath: each path is answered with a file of the pages, or not found.
func FuzzPath(f *testing.F) {
	for _, text := range []string{
		"", "/", "/console", "/console/", "/console/index.html", "/assets/main.js", "/assets", "//assets//main.js",
		"/../handler.go", "/assets/../../secret.txt", "/assets/..\\main.js", "/.", "/\x00", "/\xff",
		"console/../index.html",
	} {
		f.Add(text)
	}
	files := fstest.MapFS{}
	for _, name := range []string{"index.html", "console/index.html", "assets/main.js"} {
		files[name] = &fstest.MapFile{Data: []byte(name)}
	}
	h := New(files, nil, false)
	f.Fuzz(func(t *testing.T, text string) {
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: text}})
		asked := strings.Trim(path.Clean("/"+text), "/")
		index := strings.TrimPrefix(asked+"/index.html", "/")
		if recorder.Code == http.StatusNotFound {
			if files[asked] != nil || files[index] != nil {
				t.Fatalf("path %q is not found", text)
			}
			return
		}
		if recorder.Code != http.StatusOK {
			t.Fatalf("path %q: status %d, expected 200 or 404", text, recorder.Code)
		}
		name := recorder.Body.String()
		if files[name] == nil || name != asked && name != index {
			t.Fatalf("path %q is answered with %q", text, name)
		}
		kept := strings.Contains(recorder.Header().Get("Cache-Control"), "immutable")
		if want := strings.HasPrefix(name, hashed); kept != want {
			t.Fatalf("path %q: kept for good is %v, expected %v", text, kept, want)
		}
	})
}
