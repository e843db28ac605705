package allocate

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/transcript"
)

// TestTranscripts plays testdata/PART/*.txt. A transcript has input lines, indented lines of expected output, and
// comments (#). Times are milliseconds, rates Mbit/s, positions metres and angles degrees. The comment of each player
// describes the lines of its part.
func TestTranscripts(t *testing.T) {
	for part, begin := range map[string]func(t *testing.T) player{
		"budget":    newBudgetPlayer,
		"predictor": func(*testing.T) player { return &predictorPlayer{} },
	} {
		t.Run(part, func(t *testing.T) {
			transcript.Play(t, "testdata/"+part+"/*.txt",
				func(t *testing.T, story string) string { return playStory(t, story, begin(t)) })
		})
	}
}

// player plays the input lines of the transcripts of one part. Words without "=" are positional.
type player interface {
	play(l *line)
}

// line is an input line, and collects its output.
type line struct {
	t     *testing.T
	words []string
	keys  map[string]string
	out   []string
}

// playStory returns a transcript with its output.
func playStory(t *testing.T, story string, p player) string {
	var out []string
	for _, input := range strings.Split(strings.TrimSuffix(story, "\n"), "\n") {
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
	return strings.Join(out, "\n") + "\n"
}

func (l *line) printf(format string, arguments ...any) {
	l.out = append(l.out, "  "+fmt.Sprintf(format, arguments...))
}

// ms reads a positional word, key and msKey a named one with a default.
func (l *line) ms(i int) time.Duration { return milliseconds(l.parse(l.words[i])) }

func (l *line) key(name string, otherwise float64) float64 {
	text, ok := l.keys[name]
	if !ok {
		return otherwise
	}
	return l.parse(text)
}

func (l *line) msKey(name string, otherwise time.Duration) time.Duration {
	return milliseconds(l.key(name, float64(otherwise)/float64(time.Millisecond)))
}

func (l *line) parse(text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		l.t.Fatal(err)
	}
	return f
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// budgetPlayer: NOW estimate=R [audio=R] [overhead=SHARE] [dropped=N] [queue=MS] [until=NOW] steps a budget, every 50
// ms until then.
type budgetPlayer struct{ budget *Budget }

func newBudgetPlayer(t *testing.T) player {
	b, err := NewBudget(DefaultConfig().Budget)
	if err != nil {
		t.Fatal(err)
	}
	return &budgetPlayer{b}
}

func (p *budgetPlayer) play(l *line) {
	in := BudgetInput{
		Audio: volumetric.Bitrate(1e6 * l.key("audio", 0)), Overhead: l.key("overhead", 0),
		DroppedFrames: int(l.key("dropped", 0)), QueueDelay: l.msKey("queue", 0),
	}
	var media volumetric.Bitrate
	for now := l.ms(0); now <= l.msKey("until", l.ms(0)); now += 50 * time.Millisecond {
		media = p.budget.Step(epoch.Add(now), volumetric.Bitrate(1e6*l.key("estimate", 0)), in)
	}
	l.printf("%.3f, reserve %.1f %%, cut %.1f %%", float64(media)/1e6, 100*p.budget.reserve, 100*p.budget.cut)
}

// predictorPlayer: NOW [x=M] [left=DEG] [length=L] reports a position, and a direction left of -z, as a quaternion of
// that length; NOW until=NOW speed=M turn=DEG every=MS continues from there, with these changes per second and a report
// at each interval; NOW predict [until=NOW every=MS] asks for predictions.
type predictorPlayer struct {
	predictor Predictor
	x, left   float64
}

func (p *predictorPlayer) play(l *line) {
	from := l.ms(0)
	until, every := l.msKey("until", from), l.msKey("every", 20*time.Millisecond)
	p.x, p.left = l.key("x", p.x), l.key("left", p.left)
	for now := from; now <= until; now += every {
		if len(l.words) > 1 {
			p.predict(l, now)
			continue
		}
		v := eyeAt(p.x, 0, 0, p.left)
		v.At = epoch.Add(now)
		for i := range v.Orientation {
			v.Orientation[i] *= l.key("length", 1)
		}
		p.predictor.Observe(v)
		if now < until {
			p.x, p.left = p.x+l.key("speed", 0)*every.Seconds(), p.left+l.key("turn", 0)*every.Seconds()
		}
	}
}

func (p *predictorPlayer) predict(l *line, now time.Duration) {
	v, known := p.predictor.Predict(epoch.Add(now))
	if !known {
		l.printf("unknown")
		return
	}
	ahead := rotation(v.Orientation).apply(vector{0, 0, -1})
	left := math.Round(math.Atan2(-ahead[0], -ahead[2])*1800/math.Pi) / 10
	l.printf("at %v: x %.3f, left %.1f", now, v.Position[0], left+0) // +0 removes the sign of a zero
}
