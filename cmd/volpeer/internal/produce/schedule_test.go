package produce

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSchedule plays captures of three qualities and two workers against a limit of 100 ms: the age, the time of each
// quality, and in the line below the encoded qualities, "-" if the capture is dropped. "!" marks qualities that are
// encoded in any case.
func TestSchedule(t *testing.T) {
	const script = `
# Enough time for all, also where it has waited for a while.
0: 10 20 40 = 0 1 2
60: 10 20 40 = 0 1 2
# It has waited for too long, and a new one will be in time.
66: 10 20 40 = -
0: 10 20 40 = 0 1 2
# Not even a new one would be: the highest quality is left out, and comes first the next time.
0: 30 60 150 = !0 1
0: 30 60 150 = 0 !2
0: 30 60 150 = 0 !1
0: 30 60 150 = 0 !2
# One alone takes too long. It is tried by turns, since this may have changed.
0: 300 60 50 = 2 !1
0: 300 60 50 = !0
0: 300 60 50 = !1 2
# What is not wanted takes nothing, and is not waited for.
0: 0 60 250 = 0 !1
0: 0 60 250 = 0 !2
0: 0 60 50 = 0 1 2
`
	s := newSchedule(3, 2, 100*time.Millisecond)
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		var age int
		var ms [3]int
		if _, err := fmt.Sscanf(line, "%d: %d %d %d", &age, &ms[0], &ms[1], &ms[2]); err != nil {
			t.Fatal(err)
		}
		var costs []time.Duration
		for _, v := range ms {
			costs = append(costs, time.Duration(v)*time.Millisecond)
		}
		_, want, _ := strings.Cut(line, " = ")
		got := "-"
		if s.admit(time.Duration(age)*time.Millisecond, costs) {
			got = described(s)
		}
		words := strings.Fields(want)
		slices.SortFunc(words, func(a, b string) int {
			return strings.Compare(strings.TrimPrefix(a, "!"),
				strings.TrimPrefix(b, "!"))
		})
		if want = strings.Join(words, " "); got != want {
			t.Errorf("%s: got %s", line, got)
		}
	}
}

func described(s *schedule) string {
	var words []string
	for q, admitted := range s.admitted {
		switch {
		case admitted && q == s.first:
			words = append(words, fmt.Sprintf("!%d", q))
		case admitted:
			words = append(words, fmt.Sprint(q))
		}
	}
	return strings.Join(words, " ")
}

// TestNoLimit checks that everything is encoded, whatever the time.
func TestNoLimit(t *testing.T) {
	s := newSchedule(2, 1, 0)
	if !s.admit(time.Hour, []time.Duration{time.Hour, time.Hour}) || described(s) != "0 1" {
		t.Errorf("got %s, want everything", described(s))
	}
}

// TestQualitiesTakeTurns checks that with any time, no quality waits for more frames than there are qualities.
func TestQualitiesTakeTurns(t *testing.T) {
	s := newSchedule(4, 1, 10*time.Millisecond)
	costs := []time.Duration{5 * time.Millisecond, 8 * time.Millisecond, 12 * time.Millisecond, 50 * time.Millisecond}
	waits := make([]int, len(costs))
	for frame := range 100 {
		if !s.admit(0, costs) {
			t.Fatal("dropped a new capture")
		}
		for q := range waits {
			if waits[q]++; s.admitted[q] {
				waits[q] = 0
			}
			if waits[q] > len(costs) {
				t.Fatalf("frame %d: quality %d waits for the %dth time", frame, q, waits[q])
			}
		}
	}
}
