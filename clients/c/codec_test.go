package main_test

import (
	"path/filepath"
	"regexp"
	"testing"
)

var codecLine = regexp.MustCompile(`(?m)^(....): (\d+) bytes, (\d+) points in place$`)

// TestCodecs encodes and decodes in C with every codec of the library.
func TestCodecs(t *testing.T) {
	program := compile(t, filepath.Join("testdata", "codec.c"), sanitizer(t), "-lm")
	out, err := run(t, program)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seen := make(map[string]bool)
	for _, line := range codecLine.FindAllStringSubmatch(out, -1) {
		seen[line[1]] = true
		if line[3] != "5000" {
			t.Errorf("%s: %s of 5000 points have their place", line[1], line[3])
		}
	}
	for _, fourCC := range []string{"zstd", "cwi0", "raw1"} {
		if !seen[fourCC] {
			t.Errorf("the library does not encode %s: %s", fourCC, out)
		}
	}
}
