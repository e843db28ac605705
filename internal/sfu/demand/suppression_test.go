package demand

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// start is the beginning of virtual time.
var start = time.Unix(1_795_188_600, 0)

// TestSuppressionTranscripts runs two tiles of three qualities. A line of input has the time in milliseconds, the needs
// of all slots from then on, and after > the wanted qualities of each tile, with ! if the publisher is notified. A need
// is TILE/QUALITY for a track that a slot takes, and TILE/near for a slot that is off though its receiver may want the
// tile.
func TestSuppressionTranscripts(t *testing.T) {
	for _, test := range []struct {
		policy     Policy
		transcript string
	}{
		{Warm, `
			0    nothing   > 012 012
			9000 0/2       > 012 012
		`},
		{Strict, `
			0    nothing   > - - !
			10   0/1       > 1 - !
			20   0/1 1/2   > 1 2 !
			30   0/1 1/2   > 1 2
			40   0/2 0/1   > 12 - !
			50   0/2       > 2 - !
			60   0/near    > - - !
		`},
		{Neighbours, `
			0    nothing   > 012 012
			1999 nothing   > 012 012
			2000 nothing   > - - !
			2100 0/0       > 01 - !
			2200 0/2       > 012 - !
			2300 0/2       > 012 -
			4199 0/2       > 012 -
			4200 0/2       > 12 - !
			4300 0/2 1/1   > 12 012 !
			4400 0/1       > 012 012 !
			# Whoever comes back within the hold time finds what was there, and the time starts again.
			6000 0/1 1/2   > 012 012
			6100 0/1       > 012 012
			6400 0/1       > 012 12 !
			8000 0/1       > 012 12
			8100 0/1       > 012 - !
			# A tile that is out of sight keeps its lowest quality at hand, one that nobody wants does not.
			9000 1/near    > 012 0 !
			11000 1/near   > - 0 !
			12000 nothing  > - 0
			14000 nothing  > - - !
		`},
	} {
		t.Run(string(test.policy), func(t *testing.T) {
			s := newSuppression(Config{Policy: test.policy, Hold: 2 * time.Second}, 2, 3)
			for line := range strings.Lines(test.transcript) {
				line = strings.TrimSpace(line)
				if line == "" || strings.HasPrefix(line, "#") {
					continue
				}
				input, want, _ := strings.Cut(line, ">")
				fields := strings.Fields(input)
				var ms int
				if _, err := fmt.Sscan(fields[0], &ms); err != nil {
					t.Fatal(err)
				}
				d := needs(t, fields[1:])
				told := ""
				if s.step(start.Add(time.Duration(ms)*time.Millisecond), &d) {
					told = " !"
				}
				if got := spelled(s) + told; got != strings.TrimSpace(want) {
					t.Errorf("%s\ngot %s", line, got)
				}
			}
		})
	}
}

// needs returns the counts for the words of a transcript.
func needs(t *testing.T, words []string) counts {
	t.Helper()
	d := newCounts(2, 3)
	for _, word := range words {
		var tile, quality int
		switch {
		case word == "nothing":
		case strings.HasSuffix(word, "/near"):
			d.near[int(word[0]-'0')]++
		default:
			if _, err := fmt.Sscanf(word, "%d/%d", &tile, &quality); err != nil {
				t.Fatal(err)
			}
			d.taken[tile*3+quality]++
		}
	}
	return d
}

// spelled returns the wanted qualities of each tile as text.
func spelled(s *suppression) string {
	var tiles []string
	for _, wanted := range s.wanted {
		text := ""
		for q := range wanted.Each {
			text += fmt.Sprint(q)
		}
		if text == "" {
			text = "-"
		}
		tiles = append(tiles, text)
	}
	return strings.Join(tiles, " ")
}

// TestKeepAll checks that all tracks of a publication whose home has changed stay wanted for the hold time, under each
// policy, and that later needs end as the policy says.
func TestKeepAll(t *testing.T) {
	for _, policy := range []Policy{Strict, Neighbours} {
		s := newSuppression(Config{Policy: policy, Hold: 2 * time.Second}, 2, 3)
		s.keepAll(start)
		for _, step := range []struct {
			ms     int
			needs  string
			wanted string
		}{
			{0, "nothing", "012 012"}, {1500, "0/0", "012 012"}, {1999, "0/0", "012 012"},
			{2000, "0/0", map[Policy]string{Strict: "0 -", Neighbours: "01 -"}[policy]},
			{3600, "0/0", map[Policy]string{Strict: "0 -", Neighbours: "01 -"}[policy]},
			{3601, "nothing", map[Policy]string{Strict: "- -", Neighbours: "01 -"}[policy]},
		} {
			d := needs(t, strings.Fields(step.needs))
			s.step(start.Add(time.Duration(step.ms)*time.Millisecond), &d)
			if got := spelled(s); got != step.wanted {
				t.Errorf("%s, %d ms: the publisher is asked for %s, expected %s", policy, step.ms, got, step.wanted)
			}
		}
	}
}

// TestSuppressionIsDue checks that steps at the due times miss no change.
func TestSuppressionIsDue(t *testing.T) {
	s := newSuppression(Config{Policy: Neighbours, Hold: 2 * time.Second}, 2, 3)
	d := newCounts(2, 3)
	s.step(start, &d)
	if want := start.Add(2 * time.Second); !s.due.Equal(want) {
		t.Errorf("due at %v, expected %v", s.due, want)
	}
	if !s.step(s.due, &d) || !s.due.IsZero() || s.pausedCount() != 6 {
		t.Errorf("%d tracks are paused, due at %v, expected all six and nothing more to come", s.pausedCount(), s.due)
	}
}

// TestResumedTracks checks the resumed and the dismissed tracks of single steps.
func TestResumedTracks(t *testing.T) {
	s := newSuppression(Config{Policy: Neighbours}, 2, 3)
	for _, test := range []struct {
		needs              string
		resumed, dismissed []int
	}{
		{"0/2 1/0", nil, []int{0, 5}},
		{"0/0 1/0", []int{0}, []int{2}},
		{"0/0 1/0", nil, nil},
		{"0/1 1/2", []int{2, 5}, []int{3}},
		{"nothing", nil, []int{0, 1, 2, 4, 5}},
		{"1/near", []int{3}, nil},
	} {
		d := needs(t, strings.Fields(test.needs))
		if s.step(start, &d); !slices.Equal(s.resumed, test.resumed) || !slices.Equal(s.dismissed, test.dismissed) {
			t.Errorf("%s: tracks %v are resumed and %v dismissed, expected %v and %v", test.needs, s.resumed,
				s.dismissed, test.resumed, test.dismissed)
		}
	}
}

func TestSixtyFourQualities(t *testing.T) {
	s := newSuppression(Config{Policy: Neighbours}, 1, 64)
	d := newCounts(1, 64)
	d.taken[63]++
	s.step(start, &d)
	if got := listed(s.wanted[0]); len(got) != 2 || got[0] != 62 || got[1] != 63 {
		t.Errorf("wanted are %v, expected 62 and 63", got)
	}
}
