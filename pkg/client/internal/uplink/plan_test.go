package uplink

import (
	"bufio"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/transcript"
)

// TestPlanTranscripts runs the files of testdata/plan. Their lines are
//
//	track NAME PUBLICATION RATE [kept]   adds a track, which is wanted; tracks are in the order of their priority.
//	                                     NAME is that of the tile, and the quality
//	rate NAME RATE
//	want NAME…, unwant NAME…
//	MS BUDGET                            a step, in milliseconds after the beginning
//
// and, below each step, after ">": the sent tracks, then the tracks given up, and the rate of the sent tracks.
func TestPlanTranscripts(t *testing.T) {
	transcript.Play(t, "testdata/plan/*.txt", playPlan)
}

func playPlan(t *testing.T, text string) string {
	t.Helper()
	var out strings.Builder
	var plan plan
	var tracks []planTrack
	var names, tiles []string
	find := func(name string) *planTrack {
		i := slices.Index(names, name)
		if i < 0 {
			t.Fatalf("no track %q", name)
		}
		return &tracks[i]
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, ">") {
			continue
		}
		fmt.Fprintln(&out, line)
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		var rate float64
		var publication, ms int
		switch words[0] {
		case "track":
			scan(t, words[2:4], &publication, &rate)
			names = append(names, words[1])
			tile := strings.TrimRight(words[1], "0123456789")
			if !slices.Contains(tiles, tile) {
				tiles = append(tiles, tile)
			}
			tracks = append(tracks, planTrack{publication: publication, tile: slices.Index(tiles, tile),
				alternative: true, rate: rate, kept: len(words) > 4, wanted: true})
		case "rate":
			scan(t, words[2:], &find(words[1]).rate)
		case "want", "unwant":
			for _, name := range words[1:] {
				find(name).wanted = words[0] == "want"
			}
		default:
			scan(t, words, &ms, &rate)
			changed := plan.step(time.Unix(100, 0).Add(time.Duration(ms)*time.Millisecond), rate, tracks)
			fmt.Fprintf(&out, "> %s\n", planned(names, tracks, changed))
		}
	}
	return out.String()
}

// scan parses numbers.
func scan(t *testing.T, words []string, into ...any) {
	t.Helper()
	if _, err := fmt.Sscan(strings.Join(words, " "), into...); err != nil {
		t.Fatalf("%q: %v", words, err)
	}
}

// planned formats the result of a step.
func planned(names []string, tracks []planTrack, changed bool) string {
	var sent, gaveUp []string
	sum := 0.0
	for i, track := range tracks {
		switch {
		case track.gaveUp:
			gaveUp = append(gaveUp, names[i])
		case track.wanted:
			sent = append(sent, names[i])
			sum += track.rate
		}
	}
	text := fmt.Sprintf("%s: %g", strings.Join(sent, " "), sum)
	if len(gaveUp) > 0 {
		text += ", gave up " + strings.Join(gaveUp, " ")
	}
	if changed {
		text += ", changed"
	}
	return text
}
