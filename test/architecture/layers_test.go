// Package architecture checks the imports of the module's packages against the layers of the architecture: a package
// imports only packages on lower layers. It reads the sources themselves, for every build constraint at once; test
// files may import any package, since a test may drive a lower layer by an upper one.
package architecture

import (
	"fmt"
	"slices"
	"strings"
)

// layer is a set of packages on one layer that do not import each other. Each name includes the packages below it,
// which may import each other.
type layer struct {
	server []string // forwards media
	client []string // captures, encodes and decodes; no server imports it
}

// layers lists the layers from top to bottom. A new package must be added here.
var layers = []layer{
	{server: []string{"lab"}},
	{
		server: []string{"cmd/volsfu", "cmd/volpeer", "cmd/volbridge", "cmd/volnet", "scripts"},
		client: []string{"clients/c"},
	},
	{server: []string{"internal/server", "internal/netfn/daemon"}},
	{server: []string{"internal/config", "internal/netfn/metrics"}},
	{server: []string{"internal/dialect", "internal/netfn/control", "internal/netfn/edge", "internal/cluster/member",
		"internal/cluster/entry"}},
	{
		server: []string{"internal/signalling", "internal/admin", "internal/viewer"},
		client: []string{"internal/peer"},
	},
	{
		server: []string{"internal/sfu", "internal/recorder", "internal/auth", "internal/netem", "internal/turnserver",
			"internal/iceservers", "internal/webhook", "internal/trunk"},
		client: []string{"pkg/codec"},
	},
	{
		server: []string{"internal/forward", "internal/allocate"},
		client: []string{"pkg/client", "pkg/capture"},
	},
	{server: []string{"internal/congestion/sender"}},
	{server: []string{"internal/congestion", "internal/transport", "internal/metrics"}},
	{server: []string{"internal/feedback", "internal/netfn/paths", "internal/netfn/trigger"}},
	{server: []string{"pkg/switching", "pkg/datamessage", "internal/description", "internal/srtp", "internal/udp",
		"internal/cluster", "internal/fabric", "internal/process", "internal/panics", "internal/reload",
		"internal/acme", "internal/fault", "internal/netfn/wire", "internal/netfn/window"}},
	{
		server: []string{"pkg/payload", "pkg/signal", "pkg/recording", "pkg/vr2gather", "pkg/frametimes", "pkg/token",
			"pkg/webhook"},
		client: []string{"pkg/pointcloud", "pkg/e2ee"},
	},
	{
		server: []string{"pkg/volumetric", "clients/web", "internal/ecn", "internal/redundancy", "internal/authority",
			"internal/build", "internal/cluster/certificate", "internal/cluster/placement", "internal/cluster/ticket"},
		client: []string{"pkg/sframe", "pkg/foreign", "internal/voice"},
	},
}

// top is above the layers: it may import everything. Of all others only the lab imports it: the lab measures with the
// testbed that tests use.
var top = []string{"test"}

// bothSides are the packages with server code that may import the client's, besides the commands: the lab measures
// both.
var bothSides = []string{"lab"}

// sharedWithClient are the internal packages that pkg may import: a client estimates its uplink and receives bursts as
// a server does.
var sharedWithClient = map[string][]string{
	"pkg/client": {"internal/feedback", "internal/congestion", "internal/transport", "internal/ecn",
		"internal/redundancy"},
}

// foreign lists modules that a package must not import: the cores have no sockets, logs and metrics, and packages for
// other programs do not choose the logger or command line.
var foreign = []struct{ packages, modules []string }{
	{
		packages: []string{"internal/forward", "internal/congestion", "internal/allocate", "pkg/payload"},
		modules:  []string{"github.com/gorilla", "go.uber.org/zap", "github.com/prometheus"},
	},
	{
		packages: []string{"internal/netfn/wire", "internal/netfn/window", "internal/netfn/paths",
			"internal/netfn/trigger"},
		modules: []string{"github.com/cilium", "github.com/prometheus", "go.uber.org/zap"},
	},
	{
		packages: []string{"pkg"},
		modules:  []string{"go.uber.org/zap", "github.com/spf13"},
	},
}

// cgoPackages may contain cgo, and of the commands and packages only cgoImporters may depend on them.
var (
	cgoPackages = []string{"pkg/codec/draco", "pkg/codec/jpeg", "internal/voice/libopus",
		"cmd/volbridge/internal/libspeex", "clients/c"}
	cgoImporters = []string{"internal/peer", "internal/voice", "lab", "cmd/volpeer", "cmd/volbridge", "pkg/codec/draco",
		"pkg/codec/dracojpeg", "pkg/codec/jpeg", "pkg/codec/rgbd", "clients/c"}
)

// place is the position of a package in the layers.
type place struct {
	name   string // the entry of the table that covers the package
	rank   int    // 0 for the lowest layer
	client bool
}

// within reports whether a package is one of those named, or below one.
func within(pkg string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return pkg == name || strings.HasPrefix(pkg, name+"/") })
}

// placeOf returns the position of a package of the module, by its path within the module.
func placeOf(pkg string) (place, bool) {
	for i, f := range layers {
		for _, side := range []struct {
			names  []string
			client bool
		}{{f.server, false}, {f.client, true}} {
			for _, name := range side.names {
				if within(pkg, []string{name}) {
					return place{name: name, rank: len(layers) - 1 - i, client: side.client}, true
				}
			}
		}
	}
	return place{}, false
}

// checkImport returns the error in one package of the module importing another, or "".
func checkImport(from, to string) string {
	if within(from, top) {
		return ""
	}
	if within(to, top) {
		if within(from, bothSides) {
			return ""
		}
		return fmt.Sprintf("%s imports %s, which only tests and the lab may", from, to)
	}
	importer, ok := placeOf(from)
	if !ok {
		return fmt.Sprintf("%s belongs to no layer: place it in the table of layers_test.go", from)
	}
	imported, ok := placeOf(to)
	switch {
	case !ok:
		return fmt.Sprintf("%s imports %s, which belongs to no layer: place it in the table of layers_test.go",
			from, to)
	case importer.name == imported.name:
		return ""
	case imported.rank > importer.rank:
		return fmt.Sprintf("%s imports %s, which stands above it", from, to)
	case imported.rank == importer.rank:
		return fmt.Sprintf("%s imports %s, which stands beside it", from, to)
	case within(from, []string{"pkg"}) && within(to, []string{"internal"}) &&
		!within(to, sharedWithClient[importer.name]):
		return fmt.Sprintf("%s imports %s: pkg does not import internal (but for %v)", from, to, sharedWithClient)
	case imported.client && !importer.client && !within(from, []string{"cmd"}) && !within(from, bothSides):
		return fmt.Sprintf("%s imports %s: no server package imports the client's", from, to)
	}
	return ""
}

// checkForeign returns the error in a package importing another module's package, or "".
func checkForeign(from, to string) string {
	for _, rule := range foreign {
		if within(from, rule.packages) && within(to, rule.modules) {
			return fmt.Sprintf("%s imports %s; it imports none of %s", from, to, strings.Join(rule.modules, ", "))
		}
	}
	return ""
}
