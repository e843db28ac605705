package reload

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// at returns the states of two files that were written at the given seconds, with that size.
func at(first, second int64) []State {
	return []State{{time.Unix(first, 0), first}, {time.Unix(second, 0), second}}
}

func TestWatch(t *testing.T) {
	w := NewWatch(at(1, 1))
	for i, step := range []struct {
		states []State
		read   bool
	}{
		{at(1, 1), false},
		// One file after the other is written, and both are read once.
		{at(2, 1), false}, {at(2, 3), false}, {at(2, 3), true}, {at(2, 3), false},
		// A file is absent for a moment.
		{[]State{{}, at(2, 3)[1]}, false}, {at(2, 3), false}, {at(2, 3), false},
		// A file is absent for longer.
		{[]State{{}, at(2, 3)[1]}, false}, {[]State{{}, at(2, 3)[1]}, true}, {[]State{{}, at(2, 3)[1]}, false},
		// The old files return.
		{at(2, 3), false}, {at(2, 3), true},
	} {
		if read := w.Step(step.states); read != step.read {
			t.Errorf("step %d: read is %v", i, read)
		}
	}
	w.Read(at(5, 5))
	if w.Step(at(5, 5)) || w.Step(at(5, 5)) {
		t.Error("files that have been read are read again")
	}
}

func TestStates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	paths := []string{path}
	if states := StatesOf(paths); states[0] != (State{}) {
		t.Errorf("the state of no file is %v", states)
	}
	write(t, path, "one")
	first := StatesOf(paths)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if linked := StatesOf([]string{link}); linked[0] != first[0] || first[0].Size != 3 {
		t.Errorf("the state is %v, by a link %v", first, linked)
	}
	write(t, path, "other")
	if second := StatesOf(paths); second[0] == first[0] {
		t.Errorf("the file that was written again has the state %v", second)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLogFile moves the file while goroutines write: no line is lost.
func TestLogFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	log, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	const writers, lines = 4, 1000
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for range lines {
				if _, err := log.Write([]byte("line\n")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 5 {
		if log.Moved() {
			t.Error("the file counts as moved")
		}
		if err := os.Rename(path, filepath.Join(dir, "log."+string(rune('0'+i)))); err != nil {
			t.Fatal(err)
		}
		if !log.Moved() {
			t.Error("the file does not count as moved")
		}
		if err := log.Reopen(); err != nil {
			t.Fatal(err)
		}
	}
	writing.Wait()
	files, err := filepath.Glob(filepath.Join(dir, "log*"))
	if err != nil || len(files) != 6 {
		t.Fatalf("the files are %v, %v", files, err)
	}
	total := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		total += len(text)
	}
	if total != writers*lines*len("line\n") {
		t.Errorf("%d bytes were written, expected %d", total, writers*lines*len("line\n"))
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := log.Reopen(); err == nil {
		t.Error("a file in a folder that is absent was opened")
	}
	if _, err := log.Write([]byte("line\n")); err != nil {
		t.Errorf("after a failed reopening: %v", err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	if _, err := OpenLog(path); err == nil {
		t.Error("a log was opened in a folder that is absent")
	}
}
