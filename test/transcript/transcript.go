// Package transcript plays stories that tests keep in files: what goes in, and below it what came out when the story was written.
package transcript

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what comes out into the transcripts; read the difference before keeping it")

// Play plays every file that a pattern matches, as a test of its own. play gets a file's text, passes over the lines that came out, and returns the text with those that come out now.
// With -update they are written into the file; else the test fails at the first line that differs. That no file matches is an error.
func Play(t *testing.T, pattern string, play func(t *testing.T, story string) string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts are %s: %v", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if at := differs(got, string(want)); at > 0 {
				t.Errorf("%s:%d: got\n%s", file, at, got)
			}
		})
	}
}

// differs is the number of the first line in which two texts differ, from 1, or 0.
func differs(got, want string) int {
	if got == want {
		return 0
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return i + 1
		}
	}
	return min(len(g), len(w)) + 1
}
