package kubernetes

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// serve returns a client of a server of the API.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	c, err := newClient(server.URL, "secret", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: server.Certificate().Raw}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

// TestEvict: an eviction is a request with the token, and its refusal has the code and the message of the server.
func TestEvict(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/api/v1/namespaces/volsfu/pods/volsfu-0/eviction" ||
			r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("got %s %s with %v", r.Method, r.URL, r.Header)
		}
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"kind": "Status", "message": "the budget needs 2 healthy pods"}`))
	})
	err := c.Evict(t.Context(), "volsfu", "volsfu-0")
	if !Refused(err, http.StatusTooManyRequests) || !strings.Contains(err.Error(), "the budget needs 2 healthy pods") {
		t.Errorf("the error is %v", err)
	}
}

// objects serves the objects of volumes.
func objects(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/api/v1/namespaces/volsfu/secrets/volsfu-0-cluster":
		_, _ = w.Write([]byte(`{"data": {"node.pem": "Y2VydGlmaWNhdGU="}}`))
	case "/api/v1/namespaces/volsfu/configmaps/volsfu":
		_, _ = w.Write([]byte(`{"data": {"volsfu.yaml": "{}"}}`))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// TestVolumes: files have the paths of the volume, and missing objects are errors unless they are optional.
func TestVolumes(t *testing.T) {
	c := serve(t, objects)
	for name, test := range map[string]struct {
		volume string
		files  map[string]string
		wrong  string
	}{
		"projected": {volume: `{"projected": {"defaultMode": 288, "sources": [
				{"secret": {"name": "volsfu-0-cluster", "items": [{"key": "node.pem", "path": "volsfu-0/node.pem"}]}},
				{"secret": {"name": "volsfu-1-cluster", "optional": true}}]}}`,
			files: map[string]string{"volsfu-0/node.pem": "certificate"}},
		"ConfigMap": {volume: `{"configMap": {"name": "volsfu", "defaultMode": 420}}`,
			files: map[string]string{"volsfu.yaml": "{}"}},
		"missing object": {volume: `{"secret": {"secretName": "volsfu-keys"}}`, wrong: "404"},
		"missing entry": {volume: `{"configMap": {"name": "volsfu", "items": [{"key": "a", "path": "a"}]}}`,
			wrong: "volsfu has no entry a"},
		"other type": {volume: `{"name": "scratch", "emptyDir": {}}`, wrong: "volume scratch has a type"},
		"other source": {volume: `{"name": "token", "projected": {"sources": [{"serviceAccountToken": {}}]}}`,
			wrong: "volume token has a source"},
	} {
		t.Run(name, func(t *testing.T) {
			volume := decode[Volume](t, test.volume)
			files, err := volumeFiles(t.Context(), c, "volsfu", volume)
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) {
					t.Errorf("the error is %v, expected %q in it", err, test.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			folder := filepath.Join(t.TempDir(), "volume")
			if err := writeVolume(folder, files, os.Getgid()); err != nil {
				if os.Geteuid() != 0 {
					t.Skipf("skipped: files of another user take root: %v", err)
				}
				t.Fatal(err)
			}
			for path, want := range test.files {
				got, err := os.ReadFile(filepath.Join(folder, path))
				info, missing := os.Stat(filepath.Join(folder, path))
				if err != nil || missing != nil || string(got) != want || info.Mode() != files[path].mode {
					t.Errorf("%s has %q with mode %v, %v", path, got, info, err)
				}
			}
			if len(files) != len(test.files) {
				t.Errorf("the files are %v, expected %v", files, test.files)
			}
		})
	}
}

// TestFileOutsideVolume: an entry cannot leave the folder of its volume.
func TestFileOutsideVolume(t *testing.T) {
	err := writeVolume(filepath.Join(t.TempDir(), "volume"), map[string]file{"../file": {mode: 0o644}}, 0)
	if err == nil {
		t.Error("the file was written")
	}
}
