// Package docs checks the documents against the repository: links lead to existing targets, commands and flags in shell
// examples exist, Go code is that of examples that run, and the table of figures is that of the program.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the checkout.
var root = filepath.Join("..", "..")

// document is a page of the documentation.
type document struct {
	name string // its path in the checkout
	text string
}

// documents returns the pages of docs and those at the top of the checkout.
func documents(t *testing.T) []document {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 5 {
		t.Fatalf("%d pages in docs, expected at least five", len(names))
	}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"} {
		names = append(names, filepath.Join(root, name))
	}
	var list []document
	for _, name := range names {
		list = append(list, readDocument(t, name))
	}
	return list
}

func readDocument(t *testing.T, name string) document {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	short, err := filepath.Rel(root, name)
	if err != nil {
		t.Fatal(err)
	}
	return document{name: filepath.ToSlash(short), text: string(text)}
}

// block is a fenced block: the text behind the fence, and the lines within.
type block struct {
	info, text string
	line       int
}

// blocks returns the fenced blocks of a page.
func (d document) blocks() []block {
	var list []block
	var open *block
	for i, line := range strings.Split(d.text, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case !isFence && open != nil:
			open.text += line + "\n"
		case isFence && open != nil:
			list, open = append(list, *open), nil
		case isFence:
			open = &block{info: strings.TrimSpace(fence), line: i + 2}
		}
	}
	return list
}

var fenced = regexp.MustCompile("(?ms)^```.*?^```$")

// prose returns a page without its fenced blocks.
func (d document) prose() string { return fenced.ReplaceAllString(d.text, "") }

func TestBlocksAreClosed(t *testing.T) {
	for _, d := range documents(t) {
		if n := len(regexp.MustCompile("(?m)^```").FindAllString(d.text, -1)); n%2 != 0 {
			t.Errorf("%s has %d fences, expected an even number", d.name, n)
		}
	}
}
