package docs

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exampleFiles have the examples that docs/client.md, docs/api.md and docs/experiments.md quote. They run with the
// tests of their packages.
var exampleFiles = []string{filepath.Join(root, "pkg", "client", "example_test.go"),
	filepath.Join(root, "pkg", "token", "example_test.go"),
	filepath.Join(root, "pkg", "webhook", "example_test.go"),
	filepath.Join(root, "lab", "experiment", "example_test.go")}

// bodies returns the lines of each function of a file, without its signature and without indentation.
func bodies(t *testing.T, name string) map[string][]string {
	t.Helper()
	source, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string][]string)
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok {
			begin, end := files.Position(function.Body.Lbrace).Offset+1, files.Position(function.Body.Rbrace).Offset
			found[function.Name.Name] = flat(string(source[begin:end]))
		}
	}
	return found
}

// flat returns the lines of a text without indentation and without empty ones.
func flat(text string) []string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// contains reports whether the lines appear consecutively in the body.
func contains(body, lines []string) bool {
	for i := 0; i+len(lines) <= len(body); i++ {
		if slices.Equal(body[i:i+len(lines)], lines) {
			return true
		}
	}
	return false
}

// TestGoExamples checks the blocks ```go NAME against the functions that they quote.
func TestGoExamples(t *testing.T) {
	functions := make(map[string][]string)
	for _, name := range exampleFiles {
		for function, lines := range bodies(t, name) {
			// Functions that an example calls are not examples.
			if strings.HasPrefix(function, "Example") {
				functions[function] = lines
			}
		}
	}
	quoted := make(map[string]bool)
	for _, d := range documents(t) {
		for _, b := range d.blocks() {
			language, name, _ := strings.Cut(b.info, " ")
			if language != "go" {
				continue
			}
			body, ok := functions[name]
			switch lines := flat(b.text); {
			case !ok:
				t.Errorf("%s, line %d: quotes %q, which no file of examples has", d.name, b.line, name)
			case len(lines) == 0 || !contains(body, lines):
				t.Errorf("%s, line %d: differs from %s:\n%s", d.name, b.line, name, b.text)
			}
			quoted[name] = true
		}
	}
	for name := range functions {
		if !quoted[name] {
			t.Errorf("no page quotes %s", name)
		}
	}
}

func TestContains(t *testing.T) {
	body := flat("\n\tfirst\n\n\t\tsecond\n\tthird\n")
	tests := []struct {
		text string
		want bool
	}{
		{"first\nsecond", true}, {"  second\n\nthird", true}, {"first\nthird", false}, {"third\nfourth", false},
		{"First", false},
	}
	for _, test := range tests {
		if got := contains(body, flat(test.text)); got != test.want {
			t.Errorf("%q: got %v, expected %v", test.text, got, test.want)
		}
	}
}

// TestFiguresOfWatching checks the table of docs/client.md against the object that volpeer watch prints, in its order.
func TestFiguresOfWatching(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join(root, "cmd", "volpeer", "internal", "summary", "testdata", "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	want := keys(t, golden)
	page := readDocument(t, filepath.Join(root, "docs", "client.md"))
	_, table, ok := strings.Cut(page.text, "\n### The summary\n")
	if !ok {
		t.Fatal("docs/client.md has no part about the summary")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	var got []string
	for _, match := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(table, -1) {
		got = append(got, match[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("the table has\n%v\nexpected\n%v", got, want)
	}
}

// keys returns the keys of a JSON object, in their order.
func keys(t *testing.T, text []byte) []string {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	if _, err := decoder.Token(); err != nil {
		t.Fatal(err)
	}
	var list []string
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, key.(string))
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(err)
		}
	}
	return list
}
