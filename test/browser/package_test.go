package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/internal/server"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/long"
)

// longestMeeting is the longest time in seconds from the load of two pages until each shows the other's points.
const longestMeeting = 3

// shell runs a command in a folder, and returns its standard output.
func shell(t *testing.T, folder, name string, arguments ...string) string {
	t.Helper()
	command := exec.Command(name, arguments...)
	command.Dir = folder
	var complaints strings.Builder
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s%s", name, strings.Join(arguments, " "), err, output, complaints.String())
	}
	return strings.TrimSpace(string(output))
}

// project makes a project with the pages of a folder and with the npm package, which it builds, beside other packages
// of clients/web. The installation uses no network.
func project(t *testing.T, pages string, packages ...string) string {
	t.Helper()
	tools(t)
	npm, err := exec.LookPath("npm")
	if err != nil {
		if npm, err = filepath.Abs(filepath.Join(root, ".tools", "bin", "npm")); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(npm); err != nil {
			t.Skip("npm is missing: make deps installs it")
		}
	}
	folder := t.TempDir()
	packed := shell(t, root, filepath.Join("scripts", "npm.sh"), "pack", "test", t.TempDir())
	if err := os.CopyFS(folder, os.DirFS(pages)); err != nil {
		t.Fatal(err)
	}
	// The project names no versions, which npm would look up.
	if err := os.WriteFile(filepath.Join(folder, "package.json"), []byte(`{"private": true, "type": "module"}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	install := []string{"install", "--offline", "--install-links", "--no-audit", "--no-fund", packed}
	for _, name := range packages {
		path, err := filepath.Abs(filepath.Join(root, "clients", "web", "node_modules", name))
		if err != nil {
			t.Fatal(err)
		}
		install = append(install, path)
	}
	shell(t, folder, npm, install...)
	return folder
}

// host serves a folder, and starts a volsfu server that allows the pages' origin.
func host(t *testing.T, folder string) (pages string, s *server.Server) {
	t.Helper()
	files := httptest.NewServer(http.FileServer(http.Dir(folder)))
	t.Cleanup(files.Close)
	return files.URL, start(t, func(o *server.Options) {
		o.Config.Signalling.AllowedOrigins = []string{files.URL}
		o.Config.Rooms.ResumeGrace = 2 * patience
	})
}

// tutorial returns the page of the tutorial in docs/web.md, for a server.
func tutorial(t *testing.T, server string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "web.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n```html\n")
	page, _, _ := strings.Cut(rest, "\n```\n")
	const address = "http://127.0.0.1:8080"
	if strings.Count(page, address) != 1 {
		t.Fatalf("the first page of docs/web.md is %q, expected one with the server %s", page, address)
	}
	return []byte(strings.ReplaceAll(page, address, server))
}

// TestPackage follows the tutorial in docs/web.md: it installs the npm package into an empty project. The page, which
// no bundler has touched, is opened twice, and each shows the other's person. Another page embeds the viewer and
// receives its events. All are of another origin than the server.
func TestPackage(t *testing.T) {
	long.Test(t)
	folder := project(t, filepath.Join(root, "clients", "web", "test", "browser", "package"), "three")
	pages, s := host(t, folder)
	if err := os.WriteFile(filepath.Join(folder, "index.html"), tutorial(t, pageURL(s)), 0o600); err != nil {
		t.Fatal(err)
	}
	v := begin(t, "package.mjs", pageURL(s), pages)
	var seen struct{ Milliseconds float64 }
	v.expect("seen", &seen)
	told(t, claim.AtMost("two pages see each other, from the load of both", seen.Milliseconds/1000, "s",
		longestMeeting))
	v.expect("left", nil)
	var embedded struct {
		Events struct {
			Joined      struct{ Room, Identity string }
			Participant struct {
				Identity string
				Present  bool
			}
			Statistics struct{ Frames struct{ Decoded int64 } }
		}
	}
	v.expect("embedded", &embedded)
	if e := embedded.Events; e.Joined.Room != "demo" || e.Joined.Identity != "eye" || !e.Participant.Present {
		t.Errorf("the embedding page received %+v, expected eye in demo and participants", e)
	}
	told(t, claim.AtLeast("frames shown in the viewer that a page of another origin embeds",
		float64(embedded.Events.Statistics.Frames.Decoded), "frames", 1))
	var strange struct{ Events []string }
	v.expect("strange", &strange)
	if len(strange.Events) > 0 {
		t.Errorf("a page that is not in the list received %q, expected nothing", strange.Events)
	}
	v.expect("done", nil)
}

// TestExamples builds the pages of examples/web with Vite. The plain page, the one with React and the one with a
// renderer of its own see each other.
func TestExamples(t *testing.T) {
	long.Test(t)
	folder := project(t, filepath.Join(root, "examples", "web"), "three", "react", "react-dom", "scheduler")
	vite, err := filepath.Abs(filepath.Join(root, "clients", "web", "node_modules", "vite", "bin", "vite.js"))
	if err != nil {
		t.Fatal(err)
	}
	node, _ := tools(t)
	shell(t, folder, node, vite, "build", "--logLevel", "warn")
	pages, s := host(t, filepath.Join(folder, "dist"))
	v := begin(t, "examples.mjs", pageURL(s), pages)
	var met struct {
		People, React string
		Points        int
		Drawn         float64
		Messages      []string
	}
	v.expect("met", &met)
	if met.People != "react, renderer" || met.React != "react in demo" || met.Points < 1 || met.Drawn <= 0 {
		t.Errorf("the pages: %+v, expected that all see each other", met)
	}
	if want := "renderer draws by itself"; fmt.Sprint(met.Messages) != "["+want+"]" {
		t.Errorf("the plain page received the messages %q, expected %q", met.Messages, want)
	}
	var embedded struct{ State string }
	v.expect("embedded", &embedded)
	if embedded.State != "eye in demo" {
		t.Errorf("the page with the viewer says %q, expected %q", embedded.State, "eye in demo")
	}
	v.expect("done", nil)
}
