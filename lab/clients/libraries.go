package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/volsfu/volsfu/lab/suite"
	"github.com/volsfu/volsfu/test/claim"
)

// libraryTargets are the systems of the C library, as scripts/libraries.sh has them.
var libraryTargets = []string{"linux/amd64", "linux/arm64", "windows/amd64", "darwin/amd64", "darwin/arm64"}

// libraries builds the C library for all systems, and counts the functions of volsfu.h that each one has.
func libraries(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	tree, err := suite.SourceTree("", "clients/c")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(tree, ".tools", "zig", "zig")); err != nil {
		const reason = "Zig is missing: scripts/deps.sh release installs it"
		return []claim.Line{claim.Skip("the C library for other systems", reason)}, nil
	}
	header, err := os.ReadFile(filepath.Join(tree, "clients", "c", "volsfu.h"))
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "volsfu-libraries-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	for _, target := range libraryTargets {
		b.progress.Say("  building the C library for %s", target)
		into := filepath.Join(folder, filepath.FromSlash(target))
		if err := os.MkdirAll(into, 0o700); err != nil {
			return lines, err
		}
		if err := run(ctx, tree, nil, "scripts/libraries.sh", "0", into, target); err != nil {
			return lines, err
		}
		files, err := os.ReadDir(into)
		if err != nil {
			return lines, err
		}
		if len(files) != 1 {
			return lines, fmt.Errorf("%d files for %s, expected the library alone", len(files), target)
		}
		library, err := os.ReadFile(filepath.Join(into, files[0].Name()))
		if err != nil {
			return lines, err
		}
		all, exported := functions(header, library)
		lines = append(lines, claim.AtLeast("functions of volsfu.h in the C library for "+target,
			float64(exported), "", float64(all)))
	}
	return lines, nil
}

// declared matches the declaration of a function in volsfu.h.
var declared = regexp.MustCompile(`(?m)^VOLSFU_API [^;(]*?\b(volsfu_\w+)\(`)

// functions returns the number of functions that a header declares, and of those whose name is in the table of names of
// a library. Names in such tables end with a zero and follow one; macOS puts an underscore before them.
func functions(header, library []byte) (all, exported int) {
	for _, declaration := range declared.FindAllSubmatch(header, -1) {
		all++
		name := string(declaration[1]) + "\x00"
		if bytes.Contains(library, []byte("\x00"+name)) || bytes.Contains(library, []byte("\x00_"+name)) {
			exported++
		}
	}
	return all, exported
}
