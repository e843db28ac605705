package architecture

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxCommandLines bounds the lines of the package main of a command, without tests. A command parses its command line;
// the work belongs to packages.
const maxCommandLines = 400

// commandLines returns the number of lines of each package main of a command, by folder.
func commandLines(root string) (map[string]int, error) {
	files, err := filepath.Glob(filepath.Join(root, "cmd", "*", "*.go"))
	if err != nil {
		return nil, err
	}
	lines := make(map[string]int)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		lines[filepath.Dir(name)] += bytes.Count(text, []byte("\n"))
	}
	return lines, nil
}

// TestCommandsAreShort: the commands of both modules.
func TestCommandsAreShort(t *testing.T) {
	for _, root := range []string{checkout, filepath.Join(checkout, labFolder)} {
		lines, err := commandLines(root)
		if err != nil {
			t.Fatal(err)
		}
		if len(lines) == 0 {
			t.Errorf("found no command below %s", filepath.Join(root, "cmd"))
		}
		for folder, n := range lines {
			if n > maxCommandLines {
				t.Errorf("%s has %d lines of Go, expected at most %d: move work to the package that owns the subject",
					folder, n, maxCommandLines)
			}
		}
	}
}

// TestCommandLines counts the lines of all files of a command except tests.
func TestCommandLines(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "cmd", "long")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, lines := range map[string]int{"main.go": 300, "flags.go": 101, "main_test.go": 50} {
		text := slices.Repeat([]byte("//\n"), lines)
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := commandLines(root)
	if err != nil || len(lines) != 1 || lines[folder] != 401 {
		t.Errorf("got %v, %v, expected 401 lines", lines, err)
	}
}
