package program

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestShared has two tests of a run ask for the same program at once: it is built once.
func TestShared(t *testing.T) {
	t.Setenv(FolderVariable, t.TempDir())
	paths := make([]string, 2)
	var asking sync.WaitGroup
	for i := range paths {
		asking.Go(func() { paths[i] = Static().Path(t, "volnet") })
	}
	asking.Wait()
	if paths[0] != paths[1] {
		t.Fatalf("the programs are %q, expected one", paths)
	}
	before, err := os.Stat(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	again, err := os.Stat(Static().Path(t, "volnet"))
	if err != nil || !os.SameFile(before, again) {
		t.Errorf("the program was built again: %v", err)
	}
	entries, err := os.ReadDir(filepath.Dir(paths[0]))
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder has %v, expected the lock and the program: %v", entries, err)
	}
}

// TestWays: different ways to build have different folders.
func TestWays(t *testing.T) {
	folders := make(map[string]bool)
	for _, b := range []Build{Static(), {Cgo: true}, {Tag: "faulty"}, {Cgo: true, Tag: "faulty"}} {
		folders[b.Folder(t)] = true
	}
	if len(folders) != 4 {
		t.Errorf("4 builds have the folders %v", folders)
	}
}

func TestUnknownCommand(t *testing.T) {
	if _, err := Static().into(t.TempDir(), []string{"nothing"}); err == nil ||
		!strings.Contains(err.Error(), "build nothing") {
		t.Errorf("got %v, expected an error that names the command", err)
	}
}
