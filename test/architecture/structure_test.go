package architecture

import (
	"errors"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxMethods is the maximum number of methods declared on a type, exported or not. A type with more hides a second
// noun. Methods that a type has of an embedded one count for the embedded type.
const maxMethods = 40

// tangles are the maximum numbers of files of a package that refer to one another in a cycle. Such files can only be
// understood together. The limits also hold for the packages below.
var tangles = []struct {
	folder string
	files  int
}{
	{"internal/forward", 15},
	{"internal/sfu", 15},
	{"pkg/client", 15},
	{"cmd/volpeer", 10},
}

// structure is how the files of a package refer to one another, and the number of methods declared on each type. Tests
// are left out. References are found by names, without types.
type structure struct {
	// refers has the files to which each file refers.
	refers  map[string]map[string]bool
	methods map[string]int
}

// readStructure reads the files of the package in a folder that are built on this system. The error is a
// *build.NoGoError if there are none.
func readStructure(dir string) (*structure, error) {
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	files := make(map[string]*ast.File)
	fset := token.NewFileSet()
	for _, name := range slices.Concat(pkg.GoFiles, pkg.CgoFiles) {
		if files[name], err = parser.ParseFile(fset, filepath.Join(dir, name), nil, 0); err != nil {
			return nil, err
		}
	}
	s := &structure{refers: make(map[string]map[string]bool), methods: make(map[string]int)}
	declares, selects := s.declarations(files)
	for name, file := range files {
		to := make(map[string]bool)
		s.refers[name] = to
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				// The parser has resolved names that the file itself declares.
				if other, ok := declares[n.Name]; ok && n.Obj == nil {
					to[other] = true
				}
			case *ast.SelectorExpr:
				if others := selects[n.Sel.Name]; len(others) == 1 {
					to[others[0]] = true
				}
			}
			return true
		})
		delete(to, name)
	}
	return s, nil
}

// declarations counts the methods, and returns the file that declares each name of the package, and the files that
// declare the methods of each name: a selector may be any of these methods.
func (s *structure) declarations(files map[string]*ast.File) (names map[string]string, methods map[string][]string) {
	names, methods = make(map[string]string), make(map[string][]string)
	for file, tree := range files {
		for _, declaration := range tree.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					names[d.Name.Name] = file
					continue
				}
				methods[d.Name.Name] = append(methods[d.Name.Name], file)
				s.methods[receiver(d.Recv.List[0].Type)]++
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						names[spec.Name.Name] = file
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							names[name.Name] = file
						}
					}
				}
			}
		}
	}
	return names, methods
}

// receiver returns the name of a receiver's type.
func receiver(e ast.Expr) string {
	for {
		switch t := e.(type) {
		case *ast.StarExpr:
			e = t.X
		case *ast.IndexExpr:
			e = t.X
		case *ast.IndexListExpr:
			e = t.X
		case *ast.Ident:
			return t.Name
		default:
			return "?"
		}
	}
}

// tangle returns the largest set of files of which each reaches each other by references, sorted.
func (s *structure) tangle() []string {
	reached := make(map[string]map[string]bool)
	for from := range s.refers {
		seen := map[string]bool{}
		waiting := []string{from}
		for len(waiting) > 0 {
			next := waiting[0]
			waiting = waiting[1:]
			for to := range s.refers[next] {
				if !seen[to] {
					seen[to] = true
					waiting = append(waiting, to)
				}
			}
		}
		reached[from] = seen
	}
	var largest []string
	for a := range reached {
		set := []string{a}
		for b := range reached {
			if a != b && reached[a][b] && reached[b][a] {
				set = append(set, b)
			}
		}
		if len(set) > len(largest) {
			largest = set
		}
	}
	slices.Sort(largest)
	return largest
}

// eachPackage calls f with the structure of each package in a folder and below, by its path below root. Folders outside
// the layers and the lab are left out.
func eachPackage(t *testing.T, root, folder string, f func(pkg string, s *structure)) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, folder), func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if dir != root && (entry.Name() == labFolder || skipped(dir, entry.Name())) {
			return filepath.SkipDir
		}
		var none *build.NoGoError
		s, err := readStructure(dir)
		if errors.As(err, &none) {
			return nil
		}
		if err != nil {
			return err
		}
		pkg, err := filepath.Rel(root, dir)
		f(filepath.ToSlash(pkg), s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMethods counts the methods of all types of the product.
func TestMethods(t *testing.T) {
	types := 0
	eachPackage(t, checkout, ".", func(pkg string, s *structure) {
		types += len(s.methods)
		for name, methods := range s.methods {
			if methods > maxMethods {
				t.Errorf("%s: %s has %d methods, expected at most %d: find the second noun", pkg, name, methods,
					maxMethods)
			}
		}
	})
	if types < 500 {
		t.Errorf("%d types have methods, expected more: does the test still find the packages?", types)
	}
}

// TestFilesCanBeReadAlone bounds the cycles of references between the files of a package.
func TestFilesCanBeReadAlone(t *testing.T) {
	for _, limit := range tangles {
		packages := 0
		eachPackage(t, checkout, limit.folder, func(pkg string, s *structure) {
			packages++
			if files := s.tangle(); len(files) > limit.files {
				t.Errorf("%s: %d files refer to one another, expected at most %d: %s", pkg, len(files), limit.files,
					strings.Join(files, " "))
			}
		})
		if packages == 0 {
			t.Errorf("%s has no package", limit.folder)
		}
	}
}

// TestStructureIsRead reads a package of five files: three refer to one another, one of them by a method alone.
func TestStructureIsRead(t *testing.T) {
	s, err := readStructure(filepath.Join("testdata", "tangled"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.tangle(), []string{"clock.go", "observer.go", "timer.go"}; !slices.Equal(got, want) {
		t.Errorf("files %v refer to one another, expected %v", got, want)
	}
	if got := s.methods; len(got) != 3 || got["Clock"] != 2 || got["Observer"] != 1 || got["History"] != 1 {
		t.Errorf("methods %v, expected two of Clock, and one each of Observer and History", got)
	}
}
