package architecture

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// importGraph has the imports of a module's packages, by path within the module ("pkg/signal").
type importGraph struct {
	own     map[string][]string // package -> packages of the module
	foreign map[string][]string // package -> packages of other modules and the standard library
	cgo     map[string]bool     // packages with a file that imports "C"
}

func newGraph() *importGraph {
	return &importGraph{own: make(map[string][]string), foreign: make(map[string][]string), cgo: make(map[string]bool)}
}

// readImports reads the Go files below root except tests, regardless of their build constraints.
func readImports(root, module string) (*importGraph, error) {
	g := newGraph()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != root && skipped(name, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		return g.addFile(filepath.ToSlash(dir), name, module)
	})
	return g, err
}

// labFolder is the folder of the lab's module, whose packages belong to the same layers.
const labFolder = "lab"

// skipped reports whether a folder is outside the layers. The Go command ignores folders by their names, and those that
// are separate modules. The lab is the exception.
func skipped(dir, base string) bool {
	if base == labFolder {
		return false
	}
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "node_modules" {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return !errors.Is(err, fs.ErrNotExist)
}

func (g *importGraph) addFile(pkg, name, module string) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
	if err != nil {
		return fmt.Errorf("imports of %s: %w", name, err)
	}
	g.own[pkg] = append(g.own[pkg], []string{}...) // a package without imports is included
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("imports of %s: %w", name, err)
		}
		if imported == "C" {
			g.cgo[pkg] = true
			continue
		}
		to := g.foreign
		if rest, ok := strings.CutPrefix(imported, module); ok && (rest == "" || rest[0] == '/') {
			to, imported = g.own, path.Clean("./"+rest)
		}
		if !slices.Contains(to[pkg], imported) {
			to[pkg] = append(to[pkg], imported)
		}
	}
	return nil
}

// reaches returns a chain of imports from a package to one that the test accepts, or nil.
func (g *importGraph) reaches(from string, accept func(string) bool) []string {
	seen := make(map[string]bool)
	var search func(pkg string) []string
	search = func(pkg string) []string {
		if accept(pkg) {
			return []string{pkg}
		}
		seen[pkg] = true
		for _, next := range g.own[pkg] {
			if seen[next] {
				continue
			}
			if chain := search(next); chain != nil {
				return append([]string{pkg}, chain...)
			}
		}
		return nil
	}
	return search(from)
}

// violations returns every violation of the import rules, sorted.
func (g *importGraph) violations() []string {
	var found []string
	note := func(problem string) {
		if problem != "" && !slices.Contains(found, problem) {
			found = append(found, problem)
		}
	}
	for from, imports := range g.own {
		if _, ok := placeOf(from); !ok && !within(from, top) {
			note(fmt.Sprintf("%s belongs to no layer: place it in the table of layers_test.go", from))
			continue
		}
		for _, to := range imports {
			note(checkImport(from, to))
		}
		for _, to := range g.foreign[from] {
			note(checkForeign(from, to))
		}
		if g.cgo[from] && !within(from, cgoPackages) {
			note(fmt.Sprintf("%s uses cgo; only %s do", from, strings.Join(cgoPackages, ", ")))
		}
		if within(from, cgoImporters) || within(from, top) {
			continue
		}
		if chain := g.reaches(from, func(pkg string) bool { return g.cgo[pkg] }); len(chain) > 1 {
			note(fmt.Sprintf("%s depends on cgo: %s", from, strings.Join(chain, " -> ")))
		}
	}
	slices.Sort(found)
	return found
}
