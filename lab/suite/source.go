package suite

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrSource is returned if the tests cannot run: there is no source tree, or no Go command.
var ErrSource = errors.New("tests of the source tree")

const module = "github.com/volsfu/volsfu"

// SourceTree finds the module's source tree, with a package in it, from a folder upwards; an empty folder is the
// working directory. Errors wrap ErrSource.
func SourceTree(from, pkg string) (string, error) {
	from, err := filepath.Abs(from)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrSource, err)
	}
	for dir := from; ; dir = filepath.Dir(dir) {
		if isSourceTree(dir, pkg) {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "",
				fmt.Errorf("%w: neither %s nor a folder above it is a checkout of %s with %s: run this command in one",
					ErrSource, from, module, pkg)
		}
	}
}

func isSourceTree(dir, pkg string) bool {
	manifest, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	first, _, _ := strings.Cut(string(manifest), "\n")
	info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(pkg)))
	return strings.TrimSpace(first) == "module "+module && err == nil && info.IsDir()
}

// GoCommand returns the path of the Go command. Errors wrap ErrSource.
func GoCommand() (string, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return "", fmt.Errorf("%w: the Go command, which runs the tests, is not installed: %w", ErrSource, err)
	}
	return path, nil
}
