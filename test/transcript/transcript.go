// Package transcript runs tests that are kept in files: each file has the input and, below each step, the expected
// output.
package transcript

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the output into the transcripts; check the difference before committing")

// Play runs each file that a pattern matches as a subtest. play gets the text of a file, skips the lines of output, and
// returns the text with the present output. With -update, this text is written to the file; otherwise the test fails at
// the first line that differs. A pattern without matches is an error.
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

// outputMark begins the lines of output of PlaySteps.
const outputMark = "> "

// PlaySteps is Play for transcripts in which each input line is a step of words. begin is called for each file. The
// function that begin returns plays a step and returns the output, lines or nothing. Lines of output begin with "> " in
// the file. Empty lines and lines that begin with "#" are no steps.
func PlaySteps(t *testing.T, pattern string, begin func(t *testing.T) func(words []string) string) {
	t.Helper()
	Play(t, pattern, func(t *testing.T, story string) string {
		play := begin(t)
		var out strings.Builder
		for line := range strings.Lines(story) {
			if strings.HasPrefix(line, outputMark) {
				continue
			}
			out.WriteString(line)
			words := strings.Fields(line)
			if len(words) == 0 || strings.HasPrefix(words[0], "#") {
				continue
			}
			for result := range strings.Lines(play(words)) {
				out.WriteString(outputMark + strings.TrimSuffix(result, "\n") + "\n")
			}
		}
		return out.String()
	})
}

// differs returns the number of the first line in which two texts differ, from 1, or 0 if they are equal.
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
