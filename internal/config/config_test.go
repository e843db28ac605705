package config

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "rewrite deploy/volsfu.yaml from the structs")

const samplePath = "../../deploy/volsfu.yaml"

// TestSample checks that the sample, the structs and the flags agree. With -update it writes the sample first.
func TestSample(t *testing.T) {
	config := DefaultConfig()
	var want bytes.Buffer
	if err := NewLoader(&config).Print(&want); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(samplePath, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sample, err := os.ReadFile(samplePath)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(sample, want.Bytes()) {
		t.Errorf("%s differs from the structs; go test ./internal/config -run TestSample -update rewrites it",
			samplePath)
	}
	loaded := config
	for _, k := range NewLoader(&loaded).root.all() {
		k.value.SetZero()
	}
	if err := NewLoader(&loaded).readYAML("volsfu.yaml", sample); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(withoutNil(loaded), withoutNil(config)) {
		t.Errorf("the sample gives %+v, expected the defaults %+v", loaded, config)
	}
	checkSampleKeys(t, sample, NewLoader(&config))
}

// checkSampleKeys reads the sample without the loader: every key of the structs is present once, with a comment, and no
// other.
func checkSampleKeys(t *testing.T, sample []byte, l *Loader) {
	t.Helper()
	var document yaml.Node
	if err := yaml.Unmarshal(sample, &document); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	var walk func(node *yaml.Node, path string)
	walk = func(node *yaml.Node, path string) {
		for i := 0; i < len(node.Content); i += 2 {
			name, value := node.Content[i], node.Content[i+1]
			at := strings.TrimPrefix(path+"."+name.Value, ".")
			if name.HeadComment == "" {
				t.Errorf("%s has no comment", at)
			}
			if value.Kind == yaml.MappingNode {
				walk(value, at)
				continue
			}
			got = append(got, at)
		}
	}
	walk(document.Content[0], "")
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	l.AddFlags(flags)
	for _, k := range l.root.all() {
		want = append(want, k.name())
		if !strings.Contains(string(sample), "# --"+k.flag+", "+k.environment()+"\n") {
			t.Errorf("the sample does not name the flag and the variable of %s", k.name())
		}
		if flags.Lookup(k.flag) == nil {
			t.Errorf("%s has no flag", k.name())
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the sample has the keys %v, expected %v", got, want)
	}
	const most = 100
	if len(want) > most {
		t.Errorf("there are %d keys, expected at most %d: a key exists only if an operator can decide its value",
			len(want), most)
	}
}

func withoutNil(c Config) Config {
	for _, k := range NewLoader(&c).root.all() {
		if k.value.Type() == listType && k.value.Len() == 0 {
			k.value.SetZero()
		}
	}
	return c
}

// TestContractFlags: these names are used in README, scripts and service files of others.
func TestContractFlags(t *testing.T) {
	config := DefaultConfig()
	l := NewLoader(&config)
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	l.AddFlags(flags)
	arguments := []string{
		"--listen", ":8081", "--admin-listen", "127.0.0.1:9091", "--media-port", "7883", "--public-ip", "192.0.2.1",
		"--public-ip=2001:db8::1", "--dev",
	}
	if err := flags.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	if err := l.Load(nil); err != nil {
		t.Fatal(err)
	}
	if err := l.Validate(); err != nil {
		t.Error(err)
	}
	if config.Server.Listen != "127.0.0.1:8081" || config.Admin.Listen != "127.0.0.1:9091" ||
		config.Media.Port != 7883 || !config.Server.Dev ||
		!slices.Equal(config.Media.PublicIPs, []string{"192.0.2.1", "2001:db8::1"}) {
		t.Errorf("got %+v", config)
	}
	for _, k := range l.root.all() {
		if k.flag == "media-port" && k.environment() != "VOLSFU_MEDIA_PORT" {
			t.Errorf("the variable of --media-port is %s", k.environment())
		}
	}
}

func TestDev(t *testing.T) {
	for _, test := range []struct {
		name      string
		change    func(*Config)
		refused   bool
		listen    string
		mediaAddr string
	}{
		{"defaults", func(*Config) {}, false, "127.0.0.1:8080", "127.0.0.1"},
		{"another loopback", func(c *Config) { c.Server.Listen, c.Media.Address = "[::1]:80", "127.0.0.2" }, false,
			"[::1]:80", "127.0.0.2"},
		{"localhost", func(c *Config) { c.Server.Listen = "localhost:80" }, false, "localhost:80", "127.0.0.1"},
		{"every address", func(c *Config) { c.Server.Listen = "0.0.0.0:80" }, true, "0.0.0.0:80", "127.0.0.1"},
		{"another host", func(c *Config) { c.Server.Listen = "192.0.2.1:80" }, true, "192.0.2.1:80", "127.0.0.1"},
		{"a name", func(c *Config) { c.Server.Listen = "volsfu.example.org:80" }, true, "volsfu.example.org:80",
			"127.0.0.1"},
		{"operators on another host", func(c *Config) { c.Admin.Listen = "192.0.2.1:9090" }, true, "127.0.0.1:8080",
			"127.0.0.1"},
		{"no operators", func(c *Config) { c.Admin.Listen = "" }, false, "127.0.0.1:8080", "127.0.0.1"},
		{"media on another host", func(c *Config) { c.Media.Address = "192.0.2.1" }, true, "127.0.0.1:8080",
			"192.0.2.1"},
	} {
		config := DefaultConfig()
		config.Server.Dev = true
		test.change(&config)
		config.Settle()
		err := NewLoader(&config).Validate()
		if (err != nil) != test.refused || config.Server.Listen != test.listen ||
			config.Media.Address != test.mediaAddr {
			t.Errorf("%s: listens on %s and %s, error %v", test.name, config.Server.Listen, config.Media.Address, err)
		}
	}
	config := DefaultConfig()
	config.Settle()
	if !reflect.DeepEqual(config, DefaultConfig()) {
		t.Error("Settle changes settings without dev")
	}
}

// TestFrameSizes checks that frames may be as large as clients are told.
func TestFrameSizes(t *testing.T) {
	config := DefaultConfig()
	if err := NewLoader(&config).Load([]string{"VOLSFU_ROOMS_FRAME_BYTES=1000"}); err != nil {
		t.Fatal(err)
	}
	if config.Forward.TrackCacheBytes != 32<<20 {
		t.Errorf("a track may have %d bytes", config.Forward.TrackCacheBytes)
	}
	if config.Forward.MaxFrameBytes != 1000 {
		t.Errorf("frames may have %d bytes, clients are told 1000", config.Forward.MaxFrameBytes)
	}
}

func TestSections(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"server: ":     func(c *Config) { c.Server.Listen = "8080" },
		"media: ":      func(c *Config) { c.Media.Port = 70000 },
		"rooms: ":      func(c *Config) { c.Rooms.Rooms = 0 },
		"signalling: ": func(c *Config) { c.Signalling.Backlog = 0 },
		"auth: ":       func(c *Config) { c.Auth.Keys = []string{"a:short"} },
		"admin: ":      func(c *Config) { c.Admin.Listen = "9090" },
		"log: ":        func(c *Config) { c.Log.Level = "loud" },
	} {
		config := DefaultConfig()
		change(&config)
		if err := NewLoader(&config).Validate(); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("error is %v, expected one of %q", err, name)
		}
	}
	config := DefaultConfig()
	if err := NewLoader(&config).Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for _, spoil := range []func(*Server){
		func(s *Server) { s.TLSCert = "c" }, func(s *Server) { s.TLSKey = "k" },
		func(s *Server) { s.DrainTime = -time.Second },
		func(s *Server) { s.DrainTime = 25 * time.Hour }, func(s *Server) { s.AddressConnections = 0 },
		func(s *Server) { s.Edge = "conference@studio.sock" }, func(s *Server) { s.Edge = "@/run/studio.sock" },
		func(s *Server) { s.PublicURL = "sfu.example.org" }, func(s *Server) { s.PublicURL = "https://sfu.example.org" },
		func(s *Server) { s.PublicURL = "wss://" }, func(s *Server) { s.PublicURL = "wss://sfu.example.org/v1/signal" },
		func(s *Server) { s.PublicURL = "wss://me@sfu.example.org" }, func(s *Server) { s.PublicURL = "wss://a?b" },
		func(s *Server) { s.PublicURL, s.TLSCert, s.TLSKey = "ws://a", "c", "k" },
		func(s *Server) { s.Edge = "/run/studio.sock" }, func(s *Server) { s.Edge = "conference/run/studio.sock" },
	} {
		server := DefaultServer()
		spoil(&server)
		if err := server.Validate(); !errors.Is(err, ErrValue) {
			t.Errorf("%+v: error is %v", server, err)
		}
	}
	for address, want := range map[string]string{
		"": "", "wss://sfu.example.org": "wss://sfu.example.org", "ws://192.0.2.1:8080/": "ws://192.0.2.1:8080",
		"wss://[2001:db8::1]:8080": "wss://[2001:db8::1]:8080",
	} {
		server := DefaultServer()
		server.PublicURL = address
		if got, err := server.ParsePublicURL(); got != want || err != nil || server.Validate() != nil {
			t.Errorf("the public URL %q is %q, %v, expected %q", address, got, err, want)
		}
	}
	edge, err := ParseEdge("conference@/run/a@b.sock")
	if want := (Edge{Rule: "conference", Socket: "/run/a@b.sock"}); err != nil || *edge != want {
		t.Errorf("the edge is %+v, %v, expected %+v", edge, err, want)
	}
	if err := (Log{Level: "info", Format: "xml"}).Validate(); !errors.Is(err, ErrValue) {
		t.Errorf("format xml: error is %v", err)
	}
}

var (
	variableName = regexp.MustCompile(`VOLSFU_[A-Z0-9_]*[A-Z0-9]`)
	flagName     = regexp.MustCompile("`--([a-z-]+)")
	keyName      = regexp.MustCompile("`((?:server|media|forward|rooms|signalling|auth|admin|log)\\.[a-z_.]+)`")
)

// TestOperatorsNames: the variables, flags and keys in documentation and deploy exist. The flags of volsfu token, of
// the commands for a running server, of doctor and of certbot are separate.
func TestOperatorsNames(t *testing.T) {
	known := map[string]bool{fileVariable: true, TokenVariable: true, "--" + fileFlag: true}
	for _, own := range []string{
		"room", "identity", "publish", "subscribe", "data", "admin", "edge", "valid-for", "key", "id",
		"server", "token", "ca", "json", "ban", "wait", "node", "url", "time-server", "standalone",
		"version",
	} {
		known["--"+own] = true
	}
	config := DefaultConfig()
	for _, k := range NewLoader(&config).root.all() {
		known[k.name()], known["--"+k.flag], known[k.environment()] = true, true, true
	}
	for _, file := range []string{"docs/operations.md", "deploy/compose.yaml", "deploy/systemd/volsfu.service"} {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		names := variableName.FindAllString(string(text), -1)
		for _, match := range flagName.FindAllStringSubmatch(string(text), -1) {
			names = append(names, "--"+match[1])
		}
		for _, match := range keyName.FindAllStringSubmatch(string(text), -1) {
			names = append(names, match[1])
		}
		if len(names) == 0 {
			t.Errorf("%s names nothing", file)
		}
		for _, name := range names {
			if !known[name] {
				t.Errorf("%s speaks of %s, which there is not", file, name)
			}
		}
	}
}

// TestPrintHidesSecrets: the output of config print is copied into tickets.
func TestPrintHidesSecrets(t *testing.T) {
	config := DefaultConfig()
	config.Auth.Keys = []string{"a:0123456789abcdef0123456789abcdef"}
	var text strings.Builder
	if err := NewLoader(&config).Print(&text); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "0123456789") || !strings.Contains(text.String(), "keys: [REDACTED]") {
		t.Errorf("the secret is not hidden in\n%s", text.String())
	}
}

// TestRedactArguments: no secret of a command line is shown, in any notation.
func TestRedactArguments(t *testing.T) {
	arguments := []string{"volsfu", "serve", "--auth-keys", "first:x", "--auth-keys=second:y,third:z", "--listen",
		":8080", "--auth-keys"}
	want := []string{"volsfu", "serve", "--auth-keys", redacted, "--auth-keys=" + redacted, "--listen", ":8080",
		"--auth-keys"}
	if got := RedactArguments(arguments); !slices.Equal(got, want) {
		t.Errorf("shown are %q, expected %q", got, want)
	}
	if arguments[3] != "first:x" {
		t.Error("the command line itself was changed")
	}
}
