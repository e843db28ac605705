package present

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestTranscripts plays the scripts in testdata. A line is a time in milliseconds, a verb and its arguments:
//
//	publish NAME alternatives|descriptions|audio [FPS]
//	remove NAME
//	tile NAME TILE NUMBER CAPTURE [QUALITY]   decoded now; its first packet came 10 ms after the capture
//	first AFTER                               from now on, so long after the capture
//	off NAME TILE
//	sound NAME CAPTURE                        a packet of 20 ms that comes now
//	delay, until
//
// Lines with > are the shown frames, with the time of the next step that the stage requests.
func TestTranscripts(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			script, want := readTranscript(t, name)
			d := &director{t: t, stage: NewStage(150 * time.Millisecond), first: 10}
			for _, line := range script {
				d.direct(line)
			}
			if !slices.Equal(d.got, want) {
				t.Errorf("expected\n%s\ngot\n%s", strings.Join(want, "\n"), strings.Join(d.got, "\n"))
			}
		})
	}
}

func readTranscript(t *testing.T, name string) (script, want []string) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		switch line := strings.TrimSpace(lines.Text()); {
		case line == "" || line[0] == '#':
		case line[0] == '>':
			want = append(want, strings.TrimSpace(line[1:]))
		default:
			script = append(script, line)
		}
	}
	return script, want
}

// director plays one transcript in virtual time.
type director struct {
	t     *testing.T
	stage *Stage
	first float64
	got   []string
}

func at(ms float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(ms * float64(time.Millisecond)))
}

func ms(v time.Duration) string { return fmt.Sprintf("%.1f", float64(v)/float64(time.Millisecond)) }

// direct advances the time to that of the line and executes the line.
func (d *director) direct(line string) {
	words := strings.Fields(line)
	var when, capture float64
	var name string
	var tile, number, quality int
	d.scan(words[0], &when)
	for {
		next, ok := d.stage.Next(at(when))
		if !ok || next.After(at(when)) {
			break
		}
		d.step(next)
	}
	switch rest := strings.Join(words[2:], " "); words[1] {
	case "publish":
		d.publish(words[2], words[3], rest)
	case "remove":
		d.stage.Remove(words[2])
	case "tile":
		d.scan(rest, &name, &tile, &number, &capture, &quality)
		d.stage.Decoded(name, Arrival{
			Tile: tile, Quality: volumetric.Quality(quality), Number: int64(number),
			Capture: at(capture), First: at(capture + d.first), Decoded: at(when), Cloud: new(pointcloud.Cloud),
		})
	case "first":
		d.scan(rest, &d.first)
	case "off":
		d.scan(rest, &name, &tile)
		d.stage.Player(name).Off(tile, at(when))
	case "sound":
		d.scan(rest, &name, &capture)
		d.stage.Heard(name, at(capture), 20*time.Millisecond, at(when))
	case "delay":
		d.got = append(d.got, fmt.Sprintf("%.1f delay %s", when, ms(d.stage.Delay(at(when)))))
	case "until":
	default:
		d.t.Fatalf("cannot read %q", line)
	}
	d.step(at(when))
}

func (d *director) scan(text string, into ...any) {
	if n, _ := fmt.Sscan(text, into...); n < min(len(into), 4) {
		d.t.Fatalf("cannot read %q", text)
	}
}

func (d *director) publish(name, mode, rest string) {
	p := &volumetric.Publication{Name: name, Kind: volumetric.KindVideo, Mode: volumetric.Mode(mode)}
	if mode == "audio" {
		p.Kind, p.Mode = volumetric.KindAudio, volumetric.ModeAlternatives
	} else {
		_, _ = fmt.Sscanf(rest, name+" "+mode+" %g", &p.FrameRate)
	}
	d.stage.Add(p)
}

func (d *director) step(now time.Time) {
	for _, s := range d.stage.Step(now) {
		line := fmt.Sprintf("%s %s shows %d", ms(now.Sub(at(0))), s.Publication, s.Number)
		if len(s.Held) > 0 {
			line += " held"
			for _, tile := range slices.Sorted(maps.Keys(s.Held)) {
				line += fmt.Sprintf(" %d", tile)
				if n := s.Held[tile]; n > 1 {
					line += fmt.Sprintf(" (%d times)", n)
				}
			}
		}
		if s.Heard {
			line += " skew " + ms(s.Skew)
		}
		if d.stage.Player(s.Publication).descriptions {
			line += fmt.Sprintf(" clouds %d", len(s.Clouds))
		}
		d.got = append(d.got, line)
	}
}
