package clients

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
	"github.com/volsfu/volsfu/test/claim"
)

// pythonTime bounds the tests of the Python package, with the time of building the library.
const pythonTime = 10 * time.Minute

// pythonPackage runs the tests of the Python package. They need Go, a C compiler and a Python with NumPy; tests that
// lack further Python packages are skipped.
func pythonPackage(ctx context.Context, b *bench) ([]claim.Line, error) {
	tests := &suite.Tests{Progress: b.progress, Title: "Python package",
		Parts: []suite.Part{{Package: "clients/python", Pattern: "^Test", Limit: pythonTime,
			Counted: "tests that pass"}}}
	return tests.Run(ctx)
}

// The programs that receive and publish with the Python package.
//
//go:embed testdata/receive.py testdata/publish.py
var programsInPython embed.FS

// openPython makes the Python package usable with the library that buildC has built into the folder. The error wraps
// lab.ErrUnable without NumPy.
func openPython(ctx context.Context, folder string) (receiver, []publisher, error) {
	in := receiver{name: "Python"}
	tree, err := suite.SourceTree("", "clients/python")
	if err != nil {
		return in, nil, err
	}
	interpreter, err := findPython(ctx, tree)
	if err != nil {
		return in, nil, err
	}
	for _, name := range []string{"receive.py", "publish.py"} {
		source, err := programsInPython.ReadFile("testdata/" + name)
		if err != nil {
			return in, nil, err
		}
		if err := os.WriteFile(filepath.Join(folder, name), source, 0o600); err != nil {
			return in, nil, err
		}
	}
	command := func(name, url, room string, number int, secret string) []string {
		return []string{"env", "PYTHONPATH=" + filepath.Join(tree, "clients", "python", "src"),
			"PYTHONDONTWRITEBYTECODE=1", "VOLSFU_LIBRARY=" + filepath.Join(folder, "libvolsfu.so"), interpreter,
			filepath.Join(folder, name), url, room, strconv.Itoa(number), secret}
	}
	in.command = func(url, room, secret string) []string {
		return command("receive.py", url, room, int(watching.Seconds()), secret)
	}
	out := fed(in.name, "zstd", func(url, room, secret string) []string {
		return command("publish.py", url, room, points, secret)
	})
	return in, []publisher{out}, nil
}

// findPython returns a Python with NumPy.
func findPython(ctx context.Context, tree string) (string, error) {
	var err error
	for _, candidate := range []string{filepath.Join(tree, ".tools", "python", "bin", "python"), "python3"} {
		if err = run(ctx, tree, nil, candidate, "-c", "import numpy"); err == nil {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("%w: no Python has NumPy, which make deps installs: %w", lab.ErrUnable, err)
}
