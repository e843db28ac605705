package feedback

import (
	"strings"
	"testing"

	"github.com/volsfu/volsfu/test/transcript"
)

// lines is embedded in players: the input lines so far, each followed by its output.
type lines struct{ all []string }

func (l *lines) line(text string) { l.all = append(l.all, text) }

func (l *lines) text() string { return strings.Join(l.all, "\n") + "\n" }

// player plays the words of an input line.
type player interface {
	play(words []string) error
	line(text string)
	text() string
}

// playTranscripts plays files, each with a new player. They have input lines, indented lines of expected output, and
// comments (#).
func playTranscripts(t *testing.T, pattern string, begin func(t *testing.T) player) {
	t.Helper()
	transcript.Play(t, pattern, func(t *testing.T, story string) string {
		p := begin(t)
		for _, line := range strings.Split(strings.TrimSuffix(story, "\n"), "\n") {
			if strings.HasPrefix(line, "  ") {
				continue
			}
			p.line(line)
			if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "#") {
				if err := p.play(words); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
			}
		}
		return p.text()
	})
}
