package architecture

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var checkout = filepath.Join("..", "..")

// requirements returns the versions of the modules that a go.mod requires, by module path. Replaced modules have none.
func requirements(t *testing.T, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	versions := make(map[string]string)
	for _, line := range strings.Split(string(text), "\n") {
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(fields) >= 2 && strings.HasPrefix(fields[1], "v") && fields[0] != module {
			versions[fields[0]] = fields[1]
		}
	}
	return versions
}

// TestModulesAgree: the lab measures what the product is built of, so both modules require the same versions. What
// draws plots is required by the lab alone.
func TestModulesAgree(t *testing.T) {
	product := requirements(t, filepath.Join(checkout, "go.mod"))
	for path := range product {
		if strings.HasPrefix(path, "gonum.org/") {
			t.Errorf("go.mod requires %s; only lab/go.mod may", path)
		}
	}
	both := 0
	for path, version := range requirements(t, filepath.Join(checkout, labFolder, "go.mod")) {
		switch want, ok := product[path]; {
		case !ok:
		case version != want:
			t.Errorf("lab/go.mod requires %s %s, go.mod %s: run go work sync", path, version, want)
		default:
			both++
		}
	}
	if both < 20 {
		t.Errorf("found %d modules that both require, expected more: does the test still read go.mod?", both)
	}
}

// TestProductDoesWithoutTheLab also reads the imports of tests, which the rules of the layers do not restrict: without
// go.work no file outside the lab can import it.
func TestProductDoesWithoutTheLab(t *testing.T) {
	err := filepath.WalkDir(checkout, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != checkout && (entry.Name() == labFolder || skipped(name, entry.Name())):
			return filepath.SkipDir
		case !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		graph := newGraph()
		if err := graph.addFile("test", name, module); err != nil {
			return err
		}
		for _, imported := range graph.own["test"] {
			if within(imported, []string{labFolder}) {
				t.Errorf("%s imports %s; only the lab may", name, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
