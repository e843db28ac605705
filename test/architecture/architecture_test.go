package architecture

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/volsfu/volsfu"

func TestImportsPointDown(t *testing.T) {
	graph, err := readImports(filepath.Join("..", ".."), module)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := graph.own["pkg/volumetric"]; !ok {
		t.Fatalf("expected to find the module's packages, got %d without pkg/volumetric", len(graph.own))
	}
	for _, violation := range graph.violations() {
		t.Error(violation)
	}
}

// TestServersHaveNoCgo uses the Go command as well, since other modules may contain cgo. The standard library's is left
// out in a build without cgo, which is how the servers are built.
func TestServersHaveNoCgo(t *testing.T) {
	command := exec.Command("go", "list", "-deps", "-f", "{{if and .CgoFiles (not .Standard)}}{{.ImportPath}}{{end}}",
		module+"/cmd/volsfu", module+"/cmd/volnet")
	command.Env = append(command.Environ(), "CGO_ENABLED=1")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	if found := strings.Fields(string(out)); len(found) > 0 {
		t.Errorf("expected no package with cgo below cmd/volsfu and cmd/volnet, got %v", found)
	}
}

func TestRules(t *testing.T) {
	tests := []struct {
		name     string
		from, to string
		want     string // part of the complaint; "" if allowed
	}{
		{"down one layer", "internal/sfu", "internal/forward", ""},
		{"down many layers", "internal/signalling", "pkg/volumetric", ""},
		{"command to anything", "cmd/volpeer", "pkg/codec/draco", ""},
		{"within one entry", "pkg/codec/draco", "pkg/codec", ""},
		{"client to what it shares", "pkg/client", "internal/congestion", ""},
		{"client to messages", "pkg/client", "pkg/signal", ""},
		{"lab to the client", "lab/carriage", "pkg/client", ""},
		{"tests to anything", "test/endtoend", "internal/signalling", ""},
		{"tests to tests", "test/endtoend", "test/room", ""},
		{"lab to the testbed", "lab/firstlight", "test/testbed", ""},

		{"up", "internal/forward", "internal/sfu", "stands above it"},
		{"up within pkg", "pkg/volumetric", "pkg/signal", "stands above it"},
		{"up to a command", "internal/server", "cmd/volsfu", "stands above it"},
		{"up to the lab", "cmd/volpeer", "lab/plot", "stands above it"},
		{"sideways", "internal/sfu", "internal/auth", "stands beside it"},
		{"sideways to a sub-package", "internal/congestion", "internal/transport/ecn", "stands beside it"},
		{"sideways on the client's side", "pkg/capture/ply", "pkg/client", "stands beside it"},
		{"sideways across the sides", "internal/forward", "pkg/client", "stands beside it"},
		{"pkg to internal", "pkg/capture", "internal/metrics", "pkg does not import internal"},
		{"client to what it does not share", "pkg/client", "internal/metrics", "pkg does not import internal"},
		{"server to the client", "internal/sfu", "pkg/client", "no server package"},
		{"server to clouds", "internal/transport", "pkg/pointcloud", "no server package"},
		{"to tests", "internal/server", "test/testbed", "only tests and the lab may"},
		{"from nowhere", "internal/attic", "pkg/volumetric", "internal/attic belongs to no layer"},
		{"to nowhere", "internal/sfu", "internal/attic", "internal/attic, which belongs to no layer"},
		{"a longer name is another package", "internal/sfux", "pkg/volumetric", "belongs to no layer"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := checkImport(test.from, test.to)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("%s -> %s: expected a complaint with %q, got %q", test.from, test.to, test.want, got)
			}
		})
	}
}

func TestForeignRules(t *testing.T) {
	tests := []struct {
		from, to string
		allowed  bool
	}{
		{"internal/forward", "github.com/pion/rtp", true},
		{"internal/signalling", "github.com/gorilla/websocket", true},
		{"pkg/client", "github.com/gorilla/websocket", true},
		{"cmd/volsfu", "go.uber.org/zap/zapcore", true},
		{"internal/forward", "go.uber.org/zap", false},
		{"internal/congestion", "github.com/prometheus/client_golang/prometheus", false},
		{"internal/allocate/views", "github.com/gorilla/websocket", false},
		{"pkg/payload", "go.uber.org/zap/zapcore", false},
		{"pkg/client", "go.uber.org/zap", false},
		{"pkg/capture/ply", "github.com/spf13/cobra", false},
		{"internal/netfn/edge", "github.com/cilium/ebpf", true},
		{"internal/netfn/paths", "github.com/cilium/ebpf", false},
		{"internal/netfn/wire", "github.com/prometheus/client_golang/prometheus", false},
	}
	for _, test := range tests {
		if got := checkForeign(test.from, test.to); (got == "") != test.allowed {
			t.Errorf("%s -> %s: expected allowed %v, got %q", test.from, test.to, test.allowed, got)
		}
	}
}

// TestViolationsAreFound reads a small module that violates each rule once.
func TestViolationsAreFound(t *testing.T) {
	graph, err := readImports(filepath.Join("testdata", "crooked"), "example.org/crooked")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"cmd/volsfu depends on cgo: cmd/volsfu -> pkg/codec -> pkg/codec/draco",
		"internal/attic belongs to no layer: place it in the table of layers_test.go",
		"internal/forward imports go.uber.org/zap; it imports none of github.com/gorilla, go.uber.org/zap, " +
			"github.com/prometheus",
		"internal/forward imports internal/sfu, which stands above it",
		"pkg/capture uses cgo; only pkg/codec/draco, pkg/codec/jpeg, internal/voice/libopus, " +
			"cmd/volbridge/internal/libspeex, clients/c do",
		"pkg/codec depends on cgo: pkg/codec -> pkg/codec/draco",
	}
	if got := graph.violations(); !slices.Equal(got, want) {
		t.Errorf("expected\n%s\ngot\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
}
