// Package program builds the repository's commands for tests. The tests of one run of test/suite share the programs, so
// that the run links each of them once.
package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// FolderVariable names the environment variable with the folder of the programs that all tests of a run share. Without
// it, the programs end with the test, or with the tests of a package that uses Main.
const FolderVariable = "VOLSFU_TEST_PROGRAMS"

// Main runs the tests of a package, which share programs even if no other package does. It returns the exit status.
func Main(m *testing.M) int {
	if os.Getenv(FolderVariable) != "" {
		return m.Run()
	}
	folder, err := os.MkdirTemp("", "volsfu-programs-")
	if err == nil {
		defer func() { _ = os.RemoveAll(folder) }()
		err = os.Setenv(FolderVariable, folder)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "programs of tests:", err)
		return 1
	}
	return m.Run()
}

// Build is a way to build commands.
type Build struct {
	// Cgo enables cgo, and with it the codecs in C and C++, if there is a compiler.
	Cgo bool
	// Tag is a build tag, empty for none.
	Tag string
}

// Static is the build of releases, without cgo.
func Static() Build { return Build{} }

// Folder builds commands and returns the folder with the programs, which have the commands' names.
func (b Build) Folder(t testing.TB, names ...string) string {
	t.Helper()
	folder := os.Getenv(FolderVariable)
	if folder == "" {
		folder = t.TempDir()
	}
	folder, err := b.into(folder, names)
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// Path builds a command and returns the path of the program.
func (b Build) Path(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(b.Folder(t, name), name)
}

// cgo is the value of the variable CGO_ENABLED.
func (b Build) cgo() string {
	if b.Cgo {
		return "1"
	}
	return "0"
}

// into builds those programs that the part of the shared folder for this way does not have.
func (b Build) into(shared string, names []string) (folder string, err error) {
	folder = filepath.Join(shared, "cgo"+b.cgo()+b.Tag)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	// Other test processes wait here for programs that this one builds.
	lock, err := os.OpenFile(filepath.Join(folder, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	root, err := checkout()
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if err := b.one(root, filepath.Join(folder, name)); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// one builds the program at path, unless it is there.
func (b Build) one(root, path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	name := filepath.Base(path)
	module := root
	if _, err := os.Stat(filepath.Join(root, "cmd", name)); err != nil {
		module = filepath.Join(root, "lab")
	}
	// An interrupted build leaves no program under the final name.
	unfinished := path + ".unfinished"
	build := exec.Command("go", "build", "-buildvcs=false", "-tags="+b.Tag, "-o", unfinished, "./cmd/"+name)
	build.Dir = module
	build.Env = append(build.Environ(), "CGO_ENABLED="+b.cgo())
	if said, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", name, err, said)
	}
	return os.Rename(unfinished, path)
}

// checkout returns the repository's folder: tests run in the folder of their package.
func checkout() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.work")); err == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", errors.New("no folder around this one has a go.work: tests build programs in the checkout only")
		}
	}
}
