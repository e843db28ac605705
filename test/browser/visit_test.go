package browser

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/clients/web"
)

// patience limits every wait: pages are slow if the processor draws them, and slower while tests of other packages run.
const patience = 2 * time.Minute

// step is one line of a script's output.
type step struct {
	Step    string `json:"step"`
	Message string `json:"message"`
	// Pages are the states of all pages when the script failed.
	Pages []json.RawMessage `json:"pages"`
	raw   json.RawMessage
}

// visit is a browser that a script drives.
type visit struct {
	t     *testing.T
	steps chan step
	input io.WriteCloser
	// pid is the script's process, from which the browser's descend.
	pid   int
	began time.Time
	// patience limits the next waits.
	patience time.Duration
}

// tools finds Node and Chromium, or skips the test.
func tools(t *testing.T) (node, chromium string) {
	t.Helper()
	if _, built := web.Pages(); !built {
		t.Skip("the pages for browsers were not built: make web builds them")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		node = filepath.Join(root, ".tools", "bin", "node")
		if _, err := os.Stat(node); err != nil {
			t.Skip("Node is missing: make deps installs it")
		}
	}
	if chromium, err = exec.LookPath("chromium"); err != nil {
		t.Skip("Chromium is missing: make deps installs it")
	}
	return node, chromium
}

// begin runs a script of clients/web/test/browser with a server.
func begin(t *testing.T, script, base string, arguments ...string) *visit {
	t.Helper()
	node, chromium := tools(t)
	folder := filepath.Join(root, "clients", "web")
	artefacts := filepath.Join(folder, "test", "artefacts")
	if *pictures != "" {
		artefacts = *pictures
	}
	if err := os.MkdirAll(artefacts, 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(node, append([]string{filepath.Join("test", "browser", script), chromium, base, artefacts},
		arguments...)...)
	command.Dir = folder
	command.Stderr = &logged{t}
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	v := &visit{t: t, steps: make(chan step), input: input, pid: command.Process.Pid, patience: patience,
		began: time.Now()}
	stop := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		v.read(output, stop)
		_ = command.Wait()
	}()
	t.Cleanup(func() {
		close(stop)
		_ = input.Close()
		_ = command.Process.Kill()
		<-ended
	})
	return v
}

// read processes the script's output until it ends.
func (v *visit) read(output io.Reader, stop <-chan struct{}) {
	defer close(v.steps)
	lines := bufio.NewScanner(output)
	// Some lines have the data of thousands of points.
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		s := step{raw: append(json.RawMessage(nil), lines.Bytes()...)}
		if err := json.Unmarshal(s.raw, &s); err != nil {
			s = step{Step: "failed", Message: fmt.Sprintf("%v in %d bytes that begin with %.200s", err,
				len(s.raw), s.raw)}
		}
		select {
		case v.steps <- s:
		case <-stop:
			return
		}
	}
}

// expect waits for a step, and decodes its facts if into is not nil. Any other output of the script, including errors
// in a page, fails the test.
func (v *visit) expect(name string, into any) {
	v.t.Helper()
	v.expectOneOf(into, name)
}

// expectOneOf is expect for one of several steps.
func (v *visit) expectOneOf(into any, names ...string) {
	v.t.Helper()
	name := strings.Join(names, " or ")
	select {
	case s, open := <-v.steps:
		v.t.Logf("%q after %.1f s", s.Step, time.Since(v.began).Seconds())
		expected := open && slices.Contains(names, s.Step)
		if !expected {
			v.explain(s)
		}
		switch {
		case !open:
			v.t.Fatalf("the script ended before %q", name)
		case !expected:
			v.t.Fatalf("expected %q, the script printed %q: %s", name, s.Step, s.Message)
		case into != nil:
			if err := json.Unmarshal(s.raw, into); err != nil {
				v.t.Fatal(err)
			}
		}
	case <-time.After(v.patience):
		v.explain(step{})
		v.t.Fatalf("the script does not get to %q", name)
	}
}

// explain logs the states of the pages, and the rooms of all servers.
func (v *visit) explain(failed step) {
	v.t.Helper()
	for _, page := range failed.Pages {
		v.t.Logf("a page: %s", page)
	}
	client := http.Client{Timeout: 10 * time.Second}
	for _, s := range running {
		response, err := client.Get("http://" + s.AdminAddress() + "/admin/v1/rooms")
		if err != nil {
			v.t.Logf("the rooms of a server: %v", err)
			continue
		}
		rooms, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		v.t.Logf("the rooms of the server at %s: %s %v", s.URL(), rooms, err)
	}
}

// goOn lets the script continue.
func (v *visit) goOn() {
	v.t.Helper()
	v.say("")
}

// say sends the script a line.
func (v *visit) say(line string) {
	v.t.Helper()
	if _, err := io.WriteString(v.input, line+"\n"); err != nil {
		v.t.Fatal(err)
	}
}

// logged writes a program's standard error to the test's log.
type logged struct{ t *testing.T }

func (l *logged) Write(b []byte) (int, error) {
	l.t.Log(strings.TrimRight(string(b), "\n"))
	return len(b), nil
}
