package congestion

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the transcripts")

// player plays the input lines of the transcripts of one part. Words without "=" are positional.
type player interface {
	play(p *line)
}

// line is an input line, and collects its output.
type line struct {
	t     *testing.T
	words []string
	keys  map[string]string
	out   []string
}

func (l *line) printf(format string, arguments ...any) {
	l.out = append(l.out, "  "+fmt.Sprintf(format, arguments...))
}

// number reads a positional word, or by name a key with a default.
func (l *line) number(i int) float64 { return l.parse(l.words[i]) }

func (l *line) key(name string, otherwise float64) float64 {
	text, ok := l.keys[name]
	if !ok {
		return otherwise
	}
	return l.parse(text)
}

func (l *line) parse(text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		l.t.Fatal(err)
	}
	return f
}

// ms and msKey read milliseconds.
func (l *line) ms(i int) time.Duration { return duration(l.number(i)) }

func (l *line) msKey(name string, otherwise float64) time.Duration {
	return duration(l.key(name, otherwise))
}

func duration(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// TestTranscripts plays testdata/PART/*.txt. A transcript has input lines, indented lines of expected output, and
// comments (#). Times are milliseconds, rates Mbit/s. The comment of each player describes the lines of its part.
func TestTranscripts(t *testing.T) {
	for part, begin := range map[string]func() player{
		"groups":       func() player { return &groupsPlayer{groups{cfg: DefaultConfig().Delay}} },
		"overuse":      func() player { return &overusePlayer{} },
		"queue":        func() player { return &queuePlayer{newStandingQueue()} },
		"collapse":     func() player { return &collapsePlayer{} },
		"acknowledged": func() player { return &acknowledgedPlayer{} },
		"aimd":         func() player { return newAIMDPlayer() },
		"limited":      func() player { return &limitedPlayer{applicationLimited{share: 0.65}} },
		"silence":      func() player { return &silencePlayer{silence{cfg: DefaultConfig().Silence}} },
		"loss":         func() player { return newLossPlayer() },
		"ackdelay":     func() player { return &ackDelayPlayer{newAckDelay()} },
		"contention":   func() player { return &contentionPlayer{} },
		"shortness":    func() player { return &shortnessPlayer{} },
		"train":        func() player { return &trainPlayer{} },
		"probe":        func() player { return newProbePlayer() },
		"ecn":          func() player { return &ecnPlayer{newECNValidation()} },
		"marks":        func() player { return newMarksPlayer(50e6) },
		"slow":         func() player { return newMarksPlayer(10e6) },
		"ticks":        func() player { return &ticksPlayer{} },
	} {
		files, err := filepath.Glob("testdata/" + part + "/*.txt")
		if err != nil || len(files) == 0 {
			t.Fatalf("no transcripts of %s: %v", part, err)
		}
		for _, file := range files {
			t.Run(part+"/"+strings.TrimSuffix(filepath.Base(file), ".txt"),
				func(t *testing.T) { playFile(t, file, begin()) })
		}
	}
}

func playFile(t *testing.T, file string, p player) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, input := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if strings.HasPrefix(input, "  ") {
			continue
		}
		out = append(out, input)
		if strings.TrimSpace(input) == "" || strings.HasPrefix(input, "#") {
			continue
		}
		l := &line{t: t, keys: map[string]string{}}
		for _, word := range strings.Fields(input) {
			if name, value, ok := strings.Cut(word, "="); ok {
				l.keys[name] = value
			} else {
				l.words = append(l.words, word)
			}
		}
		p.play(l)
		out = append(out, l.out...)
	}
	got := strings.Join(out, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != string(text) {
		t.Errorf("got\n%s\nexpected\n%s", got, text)
	}
}
