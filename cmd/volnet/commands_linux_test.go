package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/internal/auth"
)

// execute runs a command line and returns the exit status, standard output and standard error.
func execute(t *testing.T, arguments ...string) (status int, output, errors string) {
	t.Helper()
	var out, err bytes.Buffer
	root := newRoot()
	root.SetArgs(arguments)
	root.SetOut(&out)
	root.SetErr(&err)
	status = run(context.Background(), root)
	return status, out.String(), err.String()
}

// valid is a configuration without an edge that runs. Its interfaces do not exist.
const valid = `name: studio
peer: office
key-file: /nonexistent/pair.key
state: STATE
paths:
  - {name: fibre, interface: vn4none0, local: 192.0.2.1, remote: 198.51.100.1}
  - {name: mobile, interface: vn4none1, local: 203.0.113.7, remote: 198.51.100.9}
send:
  rules:
    - {name: conference, to: 10.1.0.0/16, protocol: udp, copies: auto}
receive:
  inner: [10.1.0.0/16]
`

// configure writes a configuration in which one text is replaced.
func configure(t *testing.T, old, new string) string {
	t.Helper()
	dir := t.TempDir()
	if !strings.Contains(valid, old) {
		t.Fatalf("the configuration has no %q", old)
	}
	text := strings.Replace(strings.Replace(valid, old, new, 1), "STATE", dir, 1)
	path := filepath.Join(dir, "volnet.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestInvalidUse(t *testing.T) {
	good := configure(t, "studio", "studio")
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("first:"+strings.Repeat("k", auth.MinSecretBytes)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ line, want string }{
		{"fly", `unknown command "fly"`},
		{"edge --speed 3", "unknown flag: --speed"},
		{"edge more", `unknown command "more"`},
		{"edge --config /nonexistent/volnet.yaml", "/nonexistent/volnet.yaml"},
		{"edge --config " + configure(t, "peer:", "pear:"), `"pear"`},
		{"edge --config " + configure(t, "name: mobile, ", ""), "paths[1].name"},
		{"edge --config " + configure(t, "vn4none1", "vn4none0"), "vn4none0"},
		{"edge --config " + good, "/nonexistent/pair.key"},
		{"check --config " + configure(t, "copies: auto", "copies: [fibre, satellite]"), `"satellite"`},
		{"check", "/etc/volnet/volnet.yaml"},
		{"detach --config " + configure(t, "udp", "smoke"), `"smoke"`},
		{"status --config " + configure(t, "10.1.0.0/16", "10.1.0.1/16"), "send.rules[0].to"},
		{"status --controller https://127.0.0.1:1", "token-file"},
		{"status --controller http://127.0.0.1:1 --token-file " + keys, "expected https://HOST:PORT"},
		{"status --controller https://127.0.0.1:1 --token-file x --config " + good, "none of the others"},
		{"set conference", "accepts 2 arg(s), received 1"},
		{"set conference all --for soon", "invalid argument"},
		{"set conference all --for 1ns --config " + good, "expected 100ms to 24h"},
		{"set conference stop --for 10s --config " + good, "has no limit"},
		{"set conference all --controller https://127.0.0.1:1 --token-file " + keys, "--edge is missing"},
		{"set conference all --edge office --config " + good, "without --controller"},
		{"status --edge office --config " + good, "without --controller"},
		{"controller", "required flag"},
		{"controller --tls-cert x --tls-key x --key-file /nonexistent/keys", "/nonexistent/keys"},
		{"controller --tls-cert /nonexistent/cert --tls-key x --key-file " + keys, "/nonexistent/cert"},
	} {
		status, out, err := execute(t, strings.Fields(test.line)...)
		if status != statusInvalid || out != "" || strings.Count(err, "\n") != 1 || !strings.Contains(err, test.want) {
			t.Errorf("volnet %s: status %d, output %q, error %q, expected status 2 and one line with %q", test.line,
				status, out, err, test.want)
		}
	}
}

// TestNoAnswer checks commands whose edge or controller is not running.
func TestNoAnswer(t *testing.T) {
	config := configure(t, "studio", "studio")
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("token"), 0o600); err != nil {
		t.Fatal(err)
	}
	remote := " --controller https://127.0.0.1:1 --token-file " + token
	for _, line := range []string{
		"status --config " + config, "set conference all --config " + config, "status" + remote,
		"set conference all --edge studio" + remote,
	} {
		status, out, err := execute(t, strings.Fields(line)...)
		if status != statusFailed || out != "" || strings.Count(err, "\n") != 1 || !strings.Contains(err, "no answer") {
			t.Errorf("volnet %s: status %d, output %q, error %q, expected status 1 and one line", line, status, out,
				err)
		}
	}
}

func TestHelp(t *testing.T) {
	if status, out, err := execute(t, "version"); status != 0 || out != "volnet dev\n" || err != "" {
		t.Errorf("version: status %d, %q, %q", status, out, err)
	}
	for _, command := range []string{"edge", "controller", "status", "set", "detach", "check", "version"} {
		status, out, _ := execute(t, command, "--help")
		if status != 0 || !strings.Contains(out, "volnet "+command) {
			t.Errorf("%s --help: status %d, %q", command, status, out)
		}
	}
}
