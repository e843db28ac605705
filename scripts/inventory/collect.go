package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"unicode"
)

// ownModule is the prefix of this repository's modules.
const ownModule = "github.com/volsfu/volsfu"

// component is a library in one program or several.
type component struct {
	// name and version identify the component; purl is its package URL (https://github.com/package-url/purl-spec).
	name, version, purl string
	// licences are the texts, by the name of the file.
	licences []licence
	// identifiers are the SPDX identifiers of the licences.
	identifiers []string
	// hash is a digest of the component in the form of CycloneDX, if there is one.
	hash *hash
}

// program is a released program.
type program struct {
	name, digest string
	// uses are the package URLs of the program's components.
	uses []string
}

// inventory is everything that is released.
type inventory struct {
	programs   []program
	components []component
	// pages is the text about the web pages' libraries.
	pages string
}

// library is a library in C or C++ that programs built with cgo contain.
type library struct {
	// name is the module of pkg-config. copyright is the file with its licences, on Debian.
	name, copyright string
	identifiers     []string
}

// libraries are linked statically. Draco's package also names the licences of its tests and scripts.
var libraries = []library{
	{"draco", "/usr/share/doc/libdraco-dev/copyright", []string{"Apache-2.0"}},
	{"libjpeg", "/usr/share/doc/libjpeg62-turbo-dev/copyright", []string{"IJG", "BSD-3-Clause", "Zlib"}},
	{"opus", "/usr/share/doc/libopus-dev/copyright", []string{"BSD-3-Clause"}},
	{"speex", "/usr/share/doc/libspeex-dev/copyright", []string{"BSD-3-Clause"}},
}

// sources are the places of licences beside Go's module cache.
type sources struct {
	// pages is the file with the licences of the web pages' libraries, lock the package-lock.json of the pages, zig the
	// folder of Zig.
	pages, lock, zig string
}

// collect reads the programs and the licences of their components.
func collect(paths []string, from sources) (*inventory, error) {
	all := &inventory{}
	text, err := os.ReadFile(from.pages)
	if err != nil {
		return nil, fmt.Errorf("licences of the web pages: %w", err)
	}
	all.pages = string(text)
	web, err := webLibraries(from.lock)
	if err != nil {
		return nil, err
	}
	found := map[string]component{}
	cache, err := goEnvironment("GOMODCACHE")
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		p := program{name: filepath.Base(path)}
		if p.digest, err = digest(path); err != nil {
			return nil, err
		}
		modules, err := modulesOf(info, cache, found)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		more, err := partsInC(info, from.zig)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		modules = append(modules, more...)
		if embedsPages(info) {
			modules = append(modules, web...)
		}
		for _, c := range modules {
			found[c.purl] = c
			p.uses = append(p.uses, c.purl)
		}
		slices.Sort(p.uses)
		all.programs = append(all.programs, p)
	}
	for _, c := range found {
		all.components = append(all.components, c)
	}
	slices.SortFunc(all.components, func(a, b component) int { return strings.Compare(a.purl, b.purl) })
	slices.SortFunc(all.programs, func(a, b program) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// embedsPages reports whether a program has the web pages, which package clients/web embeds. Of the released programs
// only the server and the lab import it.
func embedsPages(info *debug.BuildInfo) bool {
	return strings.HasSuffix(info.Path, "/cmd/volsfu") || strings.HasSuffix(info.Path, "/cmd/vollab")
}

// modulesOf returns the Go modules of a program, and Go's standard library. known are the components read before.
func modulesOf(info *debug.BuildInfo, cache string, known map[string]component) ([]component, error) {
	version := strings.TrimPrefix(info.GoVersion, "go")
	version, _, _ = strings.Cut(version, " ")
	root, err := goEnvironment("GOROOT")
	if err != nil {
		return nil, err
	}
	standard := component{name: "Go standard library", version: version, purl: "pkg:golang/std@" + version}
	if standard.licences, standard.identifiers, err = licencesIn(root, false); err != nil {
		return nil, err
	}
	all := []component{standard}
	for _, m := range info.Deps {
		if m.Path == ownModule || strings.HasPrefix(m.Path, ownModule+"/") {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		c := component{name: m.Path, version: m.Version, purl: moduleURL(m.Path, m.Version)}
		if read, ok := known[c.purl]; ok {
			all = append(all, read)
			continue
		}
		dir := filepath.Join(cache, escaped(m.Path)+"@"+escaped(m.Version))
		if c.licences, c.identifiers, err = licencesIn(dir, true); err != nil {
			return nil, fmt.Errorf("module %s %s: %w", m.Path, m.Version, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// moduleURL returns the package URL of a module. Versions may have a plus sign, which URLs encode.
func moduleURL(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// escaped returns a module's path as in the module cache (golang.org/ref/mod, "Module cache").
func escaped(path string) string {
	var b strings.Builder
	for _, r := range path {
		if unicode.IsUpper(r) {
			b.WriteByte('!')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// partsInC returns the parts of a program that are not Go, which programs without cgo do not have.
func partsInC(info *debug.BuildInfo, zig string) ([]component, error) {
	switch {
	case setting(info, "CGO_ENABLED") != "1":
		return nil, nil
	case isLibrary(info):
		return compilerParts(zig, setting(info, "GOOS"))
	default:
		return cLibraries()
	}
}

// cLibraries returns the libraries in C and C++ of this system.
func cLibraries() ([]component, error) {
	var all []component
	for _, l := range libraries {
		version, err := output("pkg-config", "--modversion", l.name)
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(l.copyright)
		if err != nil {
			return nil, fmt.Errorf("licence of %s: %w", l.name, err)
		}
		all = append(all, component{
			name: l.name, version: version, purl: "pkg:generic/" + l.name + "@" + version,
			licences: []licence{{"copyright", string(text)}}, identifiers: l.identifiers,
		})
	}
	return all, nil
}

// webLibraries returns the libraries in the web pages, from the lock file of npm.
func webLibraries(lock string) ([]component, error) {
	text, err := os.ReadFile(lock)
	if err != nil {
		return nil, err
	}
	var locked struct {
		Packages map[string]struct {
			Version, Integrity, License string
			Dev, Optional               bool
		}
	}
	if err := json.Unmarshal(text, &locked); err != nil {
		return nil, fmt.Errorf("%s: %w", lock, err)
	}
	var all []component
	for path, p := range locked.Packages {
		_, name, ok := strings.Cut(path, "node_modules/")
		if !ok || p.Dev || p.Optional {
			continue
		}
		if p.License == "" {
			return nil, fmt.Errorf("%s: %s has no licence", lock, name)
		}
		c := component{name: name, version: p.Version, purl: "pkg:npm/" + name + "@" + p.Version,
			identifiers: []string{p.License}}
		if c.hash, err = integrity(p.Integrity); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", lock, name, err)
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b component) int { return strings.Compare(a.purl, b.purl) })
	return all, nil
}

func digest(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

func goEnvironment(name string) (string, error) { return output("go", "env", name) }

// output returns the first line of a command's output.
func output(name string, arguments ...string) (string, error) {
	text, err := exec.Command(name, arguments...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(arguments, " "), err)
	}
	return strings.TrimSpace(string(text)), nil
}
