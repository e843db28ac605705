package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// isLibrary reports whether a file is the C library. Releases build it with Zig and the tag portable: it has none of
// the libraries in C and C++ that other programs with cgo have, but the runtime of Zig's compiler.
func isLibrary(info *debug.BuildInfo) bool { return strings.HasSuffix(info.Path, "/clients/c") }

// compilerParts returns the parts of Zig, from its folder, that Zig links into a library for a system.
func compilerParts(zig, system string) ([]component, error) {
	version, err := os.ReadFile(filepath.Join(zig, "version"))
	if err != nil {
		return nil, fmt.Errorf("version of Zig: %w", err)
	}
	parts := []struct{ name, file, identifier string }{{"zig", "LICENSE", "MIT"}}
	if system == "windows" {
		parts = append(parts, struct{ name, file, identifier string }{
			"mingw-w64-of-zig", "lib/libc/mingw/COPYING", "ZPL-2.1",
		})
	}
	var all []component
	for _, p := range parts {
		text, err := os.ReadFile(filepath.Join(zig, filepath.FromSlash(p.file)))
		if err != nil {
			return nil, fmt.Errorf("licence of %s: %w", p.name, err)
		}
		c := component{
			name: p.name, version: strings.TrimSpace(string(version)),
			licences: []licence{{filepath.Base(p.file), string(text)}}, identifiers: []string{p.identifier},
		}
		c.purl = "pkg:generic/" + c.name + "@" + c.version
		all = append(all, c)
	}
	return all, nil
}
