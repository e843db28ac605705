// Package lint tests the checks of scripts/ for known vulnerabilities: each check fails and passes when it should, and
// reports when it could not be done.
package lint

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// outOfReach is the exit status of a scan without a database.
const outOfReach = 77

// run runs scripts/vulnerabilities.sh of a checkout and returns its exit status and its output.
func run(t *testing.T, checkout string, environment []string, arguments ...string) (status int, output string) {
	t.Helper()
	command := exec.Command("bash", append([]string{filepath.Join(checkout, "scripts", "vulnerabilities.sh")},
		arguments...)...)
	command.Env = append(command.Environ(), environment...)
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), string(out)
}

var repository = filepath.Join("..", "..")

func TestModulesHaveTheirLeastVersions(t *testing.T) {
	if status, output := run(t, repository, nil, "floors"); status != 0 {
		t.Errorf("status %d: %s", status, output)
	}
}

// TestFloors has versions in go.mod below, at and above those that fix vulnerabilities.
func TestFloors(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(repository, "scripts", "vulnerabilities.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, require, want string }{
		{"at the floor", "require (\n\tgithub.com/pion/dtls/v3 v3.1.15\n\tgolang.org/x/net v0.38.0 // indirect\n)", ""},
		{"above, by more digits", "require (\n\tgithub.com/pion/dtls/v3 v3.10.0\n)", ""},
		{"none of them", "require golang.org/x/sync v0.1.0", ""},
		{"below", "require (\n\tgithub.com/pion/dtls/v3 v3.1.8\n)", "github.com/pion/dtls/v3 v3.1.8, expected v3.1.15"},
		{"below, by fewer digits", "require github.com/pion/dtls/v3 v3.1.9",
			"github.com/pion/dtls/v3 v3.1.9, expected v3.1.15"},
		{"below, indirect",
			"require (\n\tgithub.com/pion/dtls/v3 v3.1.15\n\tgolang.org/x/crypto v0.44.0 // indirect\n)",
			"golang.org/x/crypto v0.44.0, expected v0.45.0"},
	} {
		checkout := t.TempDir()
		if err := os.Mkdir(filepath.Join(checkout, "scripts"), 0o755); err != nil {
			t.Fatal(err)
		}
		for path, content := range map[string][]byte{
			filepath.Join("scripts", "vulnerabilities.sh"): script,
			"go.mod": []byte("module example.org/pins\n\ngo 1.26.0\n\n" + test.require + "\n"),
		} {
			if err := os.WriteFile(filepath.Join(checkout, path), content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		status, output := run(t, checkout, nil, "floors")
		if (status != 0) != (test.want != "") || !strings.Contains(output, test.want) {
			t.Errorf("%s: status %d, %q, expected a complaint with %q", test.name, status, output, test.want)
		}
	}
}

// database creates a vulnerability database (https://go.dev/security/vuln/database) with entries.
func database(t *testing.T, modules, vulnerabilities []any, entries map[string]any) (url string) {
	t.Helper()
	dir := t.TempDir()
	files := map[string]any{
		"index/db.json":      map[string]string{"modified": modified},
		"index/modules.json": modules,
		"index/vulns.json":   vulnerabilities,
	}
	for id, entry := range entries {
		files["ID/"+id+".json"] = entry
	}
	for name, content := range files {
		text, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return "file://" + filepath.ToSlash(dir)
}

// modified is the time of the last change of the database and its entries.
const modified = "2026-11-01T00:00:00Z"

// object and list keep JSON short.
type (
	object = map[string]any
	list   = []any
)

// sdpBefore is a database with one vulnerability, in a function of pion/sdp that the server calls, in all versions
// before the given one.
func sdpBefore(t *testing.T, fixed string) (url string) {
	const id, module = "GO-2099-0001", "github.com/pion/sdp/v3"
	return database(t,
		list{object{"path": module, "vulns": list{object{"id": id, "modified": modified, "fixed": fixed}}}},
		list{object{"id": id, "modified": modified}},
		map[string]any{id: object{
			"schema_version": "1.3.1", "id": id, "modified": modified, "published": modified,
			"summary": "made for a test", "details": "made for a test",
			"affected": list{object{
				"package": object{"name": module, "ecosystem": "Go"},
				"ranges": list{object{"type": "SEMVER",
					"events": list{object{"introduced": "0"}, object{"fixed": fixed}}}},
				"ecosystem_specific": object{"imports": list{object{
					"path": module, "symbols": list{"SessionDescription.Unmarshal",
						"SessionDescription.UnmarshalString"},
				}}},
			}},
			"database_specific": object{"url": "https://pkg.go.dev/vuln/" + id},
		}},
	)
}

// scanned is a package that calls pion/sdp and little else: scanning everything takes a minute.
const scanned = "./internal/description"

func TestScan(t *testing.T) {
	if _, err := os.Stat(filepath.Join(repository, ".tools", "bin", "govulncheck")); err != nil {
		if _, err := exec.LookPath("govulncheck"); err != nil {
			t.Skip("skipped: govulncheck is missing; scripts/deps.sh lint installs it")
		}
	}
	for _, test := range []struct {
		name        string
		environment []string
		status      int
		want        string
	}{
		{"an empty database", []string{"GOVULNDB=" + database(t, list{}, list{}, nil)}, 0, "No vulnerabilities found"},
		{"a vulnerability of this version", []string{"GOVULNDB=" + sdpBefore(t, "3.999.0")}, 3, "GO-2099-0001"},
		{"a vulnerability of older versions", []string{"GOVULNDB=" + sdpBefore(t, "3.0.1")}, 0,
			"No vulnerabilities found"},
		{"a database that is not there", []string{"GOVULNDB=file:///nonexistent"}, 1, "nonexistent"},
		// No proxy listens on the port.
		{"no way to the default database", []string{"GOVULNDB=", "HTTPS_PROXY=http://127.0.0.1:1",
			"https_proxy=http://127.0.0.1:1", "NO_PROXY=", "no_proxy="}, outOfReach,
			"govulncheck: skipped, the vulnerability database https://vuln.go.dev is out of reach"},
	} {
		status, output := run(t, repository, test.environment, "scan", scanned)
		if status != test.status || !strings.Contains(output, test.want) {
			t.Errorf("%s: status %d, expected %d and %q:\n%s", test.name, status, test.status, test.want, output)
		}
	}
}

func TestUnknownCommand(t *testing.T) {
	if status, output := run(t, repository, nil, "scam"); status != 2 || !strings.Contains(output, `got "scam"`) {
		t.Errorf("status %d, %q, expected 2 and the command", status, output)
	}
}
