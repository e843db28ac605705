package transcript

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDiffers(t *testing.T) {
	for _, test := range []struct {
		got, want string
		at        int
	}{
		{"a\nb\n", "a\nb\n", 0}, {"a\nb\n", "a\nc\n", 2}, {"a\n", "a\nb\n", 2}, {"a\nb\n", "a\nb", 3}, {"", "a", 1},
	} {
		if at := differs(test.got, test.want); at != test.at {
			t.Errorf("%q and %q differ in line %d, want %d", test.got, test.want, at, test.at)
		}
	}
}

// TestPlaySteps checks that steps are played in order, from the beginning for each file, and that their output stands
// below them.
func TestPlaySteps(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"one.txt", "two.txt"} {
		story := "# comment\n\nsay a b\n> 1 a\n> 1 b\nquiet\nsay c\n> 3 c\n"
		if err := os.WriteFile(filepath.Join(folder, name), []byte(story), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := 0
	PlaySteps(t, filepath.Join(folder, "*.txt"), func(*testing.T) func([]string) string {
		files++
		steps := 0
		return func(words []string) string {
			steps++
			text := ""
			for _, word := range words[1:] {
				text += fmt.Sprintln(steps, word)
			}
			return strings.TrimSuffix(text, "\n")
		}
	})
	if files != 2 {
		t.Errorf("%d files begun, want 2", files)
	}
}

// TestPlay checks that every transcript is played once, and that -update writes the output.
func TestPlay(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"one.txt", "two.txt", "other.md"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("in\n> out\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pattern := filepath.Join(folder, "*.txt")
	var stories []string
	Play(t, pattern, func(_ *testing.T, story string) string {
		stories = append(stories, story)
		return story
	})
	if strings.Join(stories, "") != "in\n> out\nin\n> out\n" {
		t.Errorf("played %q", stories)
	}
	before := *update
	*update = true
	defer func() { *update = before }()
	Play(t, pattern, func(*testing.T, string) string { return "in\n> more\n" })
	for name, want := range map[string]string{"one.txt": "in\n> more\n", "two.txt": "in\n> more\n",
		"other.md": "in\n> out\n"} {
		if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
}
