package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sides are the folders whose packages docs/architecture.md lists.
var sides = []string{"cmd", "internal", "pkg", "lab"}

// named matches a code span that is the path of a package.
var named = regexp.MustCompile("`([a-z0-9]+(?:/[a-z0-9]+)*)`")

// section returns the part of a page from a heading to the next heading of the same level.
func (d document) section(t *testing.T, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(d.text, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no part %q", d.name, heading)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	return rest
}

// rowsOf returns the rows of a page's tables whose first cell names the package.
func (d document) rowsOf(name string) string {
	var rows strings.Builder
	for _, line := range strings.Split(d.text, "\n") {
		cells := strings.SplitN(line, "|", 3)
		if len(cells) == 3 && cells[0] == "" && strings.Contains(cells[1], "`"+name+"`") {
			rows.WriteString(line + "\n")
		}
	}
	return rows.String()
}

// packagesBelow returns the folders below a folder of the checkout that contain Go code besides tests, as slash paths
// relative to that folder and without the element internal.
func packagesBelow(t *testing.T, folder string) []string {
	t.Helper()
	found := make(map[string]bool)
	base := filepath.Join(root, filepath.FromSlash(folder))
	err := filepath.WalkDir(base, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "testdata":
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		below, err := filepath.Rel(base, filepath.Dir(path))
		if below = strings.TrimPrefix(filepath.ToSlash(below), "internal/"); below != "." {
			found[below] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for name := range found {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// TestEveryPackageIsOnTheMap checks that docs/architecture.md lists exactly the existing packages: those directly in
// cmd, internal, pkg and lab by their paths, and the packages below each of them in a row of that package.
func TestEveryPackageIsOnTheMap(t *testing.T) {
	page := readDocument(t, filepath.Join(root, "docs", "architecture.md"))
	packages, lab, tests := page.section(t, "Packages"), page.section(t, "The lab"), page.section(t, "Tests")
	for _, side := range sides {
		text := packages
		if side == "lab" {
			text = lab
		}
		entries, err := os.ReadDir(filepath.Join(root, side))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if !entry.IsDir() {
				continue
			}
			name := side + "/" + entry.Name()
			if !strings.Contains(text, "`"+name+"`") {
				t.Errorf("docs/architecture.md does not name %s", name)
			}
			if name == "lab/cmd" || name == "lab/test" {
				continue
			}
			for _, below := range packagesBelow(t, name) {
				text := page.rowsOf(name)
				if strings.HasSuffix(below, "test") {
					text, below = tests, below[strings.LastIndexByte(below, '/')+1:]
				}
				if !strings.Contains(text, "`"+below+"`") {
					t.Errorf("docs/architecture.md does not name %s among the parts of %s", below, name)
				}
			}
		}
	}
	for _, match := range named.FindAllStringSubmatch(page.text, -1) {
		side, _, below := strings.Cut(match[1], "/")
		if !below || !slices.Contains(sides, side) {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(match[1]))); err != nil {
			t.Errorf("docs/architecture.md names %s, which does not exist", match[1])
		}
	}
}

// TestWhereToLook checks that the files in that table of docs/architecture.md contain the names beside them.
func TestWhereToLook(t *testing.T) {
	page := readDocument(t, filepath.Join(root, "docs", "architecture.md"))
	checked := 0
	for _, row := range strings.Split(page.section(t, "Where to look"), "\n") {
		cells := strings.Split(row, "|")
		if len(cells) != 5 || !strings.Contains(cells[2], "](") {
			continue
		}
		var code strings.Builder
		for _, match := range link.FindAllStringSubmatch(cells[2], -1) {
			text, err := os.ReadFile(filepath.Join(root, "docs", filepath.FromSlash(match[1])))
			if err != nil {
				t.Error(err)
				continue
			}
			code.Write(text)
		}
		for _, match := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(cells[3], -1) {
			checked++
			if !regexp.MustCompile(`\b` + match[1] + `\b`).MatchString(code.String()) {
				t.Errorf("%s: the files have no %s", strings.TrimSpace(cells[1]), match[1])
			}
		}
	}
	if checked < 20 {
		t.Errorf("checked %d names, expected at least 20: does the test still see the table?", checked)
	}
}
