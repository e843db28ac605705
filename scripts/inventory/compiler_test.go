package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestCompilerParts names the parts of Zig in a library, which has another one for Windows.
func TestCompilerParts(t *testing.T) {
	zig := t.TempDir()
	if err := os.MkdirAll(filepath.Join(zig, "lib", "libc", "mingw"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"version": "0.1\n", "LICENSE": "MIT", "lib/libc/mingw/COPYING": "ZPL"} {
		if err := os.WriteFile(filepath.Join(zig, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for system, want := range map[string][]string{
		"linux": {"pkg:generic/zig@0.1"}, "windows": {"pkg:generic/zig@0.1", "pkg:generic/mingw-w64-of-zig@0.1"},
	} {
		parts, err := compilerParts(zig, system)
		if err != nil || len(parts) != len(want) {
			t.Fatalf("%s: %v, %d parts, expected %d", system, err, len(parts), len(want))
		}
		for i, p := range parts {
			if p.purl != want[i] || len(p.licences) != 1 || len(p.identifiers) != 1 {
				t.Errorf("%s: part %d is %s with %d licences, expected %s", system, i, p.purl, len(p.licences), want[i])
			}
		}
	}
	if _, err := compilerParts(t.TempDir(), "linux"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v without Zig, expected that a file is missing", err)
	}
}
