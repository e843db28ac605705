// Package architecture holds the imports of the module's packages against the floors of the house: an import points
// down, never up or sideways. It reads the sources themselves, for every build constraint at once; files of tests may
// import what they like, since a test may well drive a lower floor by an upper one.
package architecture

import (
	"fmt"
	"slices"
	"strings"
)

// floor is packages on one level that do not know each other. Each name stands for the packages below it, too, which
// may import each other.
type floor struct {
	server []string // what forwards
	client []string // what captures, encodes and decodes; no server imports it
}

// house lists the floors from the roof down. A new package must be placed here.
var house = []floor{
	{server: []string{"lab"}},
	{
		server: []string{"cmd/volsfu", "cmd/volpeer", "cmd/volbridge"},
		client: []string{"clients/c"},
	},
	{server: []string{"internal/server"}},
	{server: []string{"internal/config"}},
	{server: []string{"internal/dialect"}},
	{
		server: []string{"internal/signalling", "internal/admin", "internal/viewer"},
		client: []string{"internal/peer"},
	},
	{server: []string{"internal/sfu", "internal/auth", "internal/netem"}},
	{
		server: []string{"internal/forward", "internal/allocate"},
		client: []string{"pkg/client", "pkg/capture", "pkg/codec"},
	},
	{server: []string{"internal/congestion/sender"}},
	{server: []string{"internal/congestion", "internal/transport", "internal/metrics"}},
	{server: []string{"internal/feedback"}},
	{server: []string{"pkg/switching", "internal/description", "internal/srtp", "internal/udp", "internal/priority", "internal/alarm", "internal/panics", "internal/fault"}},
	{
		server: []string{"pkg/payload", "pkg/signal", "pkg/vr2gather", "pkg/frametimes"},
		client: []string{"pkg/pointcloud"},
	},
	{server: []string{"pkg/volumetric", "clients/web"}},
}

// roof is above the house: it may import everything. Of all others only the lab imports it: the lab measures with the testbed
// that tests use.
var roof = []string{"test"}

// bothSides are the packages with server code that may import the client's, besides the commands: the lab measures both.
var bothSides = []string{"lab"}

// sharedWithClient is what pkg may import of internal: a client estimates its uplink and receives bursts as a server
// does.
var sharedWithClient = map[string][]string{
	"pkg/client": {"internal/feedback", "internal/congestion", "internal/transport", "internal/alarm"},
}

// foreign says which other modules a package must not import: the cores stay free of sockets, logs and metrics, and
// what other programs import does not choose their logger or command line.
var foreign = []struct{ packages, modules []string }{
	{
		packages: []string{"internal/forward", "internal/congestion", "internal/allocate", "pkg/payload"},
		modules:  []string{"github.com/gorilla", "go.uber.org/zap", "github.com/prometheus"},
	},
	{
		packages: []string{"pkg"},
		modules:  []string{"go.uber.org/zap", "github.com/spf13"},
	},
}

// cgoPackages may contain cgo, and of the commands and packages only cgoImporters may depend on them.
var (
	cgoPackages  = []string{"pkg/codec/draco", "pkg/codec/dracojpeg", "cmd/volbridge/internal/libopus", "cmd/volbridge/internal/libspeex", "clients/c"}
	cgoImporters = []string{"internal/peer", "lab", "cmd/volpeer", "cmd/volbridge", "pkg/codec/draco", "pkg/codec/dracojpeg", "clients/c"}
)

// place is where a package stands in the house.
type place struct {
	name   string // the entry of the table that covers the package
	height int    // 0 on the lowest floor
	client bool
}

// within reports whether a package is one of those named, or below one.
func within(pkg string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return pkg == name || strings.HasPrefix(pkg, name+"/") })
}

// placeOf returns where a package of the module stands, by its path within the module.
func placeOf(pkg string) (place, bool) {
	for i, f := range house {
		for _, side := range []struct {
			names  []string
			client bool
		}{{f.server, false}, {f.client, true}} {
			for _, name := range side.names {
				if within(pkg, []string{name}) {
					return place{name: name, height: len(house) - 1 - i, client: side.client}, true
				}
			}
		}
	}
	return place{}, false
}

// checkImport returns what is wrong with one package of the module importing another, "" if nothing.
func checkImport(from, to string) string {
	if within(from, roof) {
		return ""
	}
	if within(to, roof) {
		if within(from, bothSides) {
			return ""
		}
		return fmt.Sprintf("%s imports %s, which only tests and the lab may", from, to)
	}
	importer, ok := placeOf(from)
	if !ok {
		return fmt.Sprintf("%s stands on no floor: place it in the table of house_test.go", from)
	}
	imported, ok := placeOf(to)
	switch {
	case !ok:
		return fmt.Sprintf("%s imports %s, which stands on no floor: place it in the table of house_test.go", from, to)
	case importer.name == imported.name:
		return ""
	case imported.height > importer.height:
		return fmt.Sprintf("%s imports %s, which stands above it", from, to)
	case imported.height == importer.height:
		return fmt.Sprintf("%s imports %s, which stands beside it", from, to)
	case within(from, []string{"pkg"}) && within(to, []string{"internal"}) &&
		!within(to, sharedWithClient[importer.name]):
		return fmt.Sprintf("%s imports %s: pkg does not import internal (but for %v)", from, to, sharedWithClient)
	case imported.client && !importer.client && !within(from, []string{"cmd"}) && !within(from, bothSides):
		return fmt.Sprintf("%s imports %s: no server package imports the client's", from, to)
	}
	return ""
}

// checkForeign returns what is wrong with a package importing another module's package, "" if nothing.
func checkForeign(from, to string) string {
	for _, rule := range foreign {
		if within(from, rule.packages) && within(to, rule.modules) {
			return fmt.Sprintf("%s imports %s; it imports none of %s", from, to, strings.Join(rule.modules, ", "))
		}
	}
	return ""
}
