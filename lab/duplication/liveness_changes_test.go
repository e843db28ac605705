package duplication

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

const ms = time.Millisecond

// TestChangeLog reads the log of an edge, which arrives in parts.
func TestChangeLog(t *testing.T) {
	began := time.UnixMilli(1_700_000_000_000)
	line := func(after time.Duration, message, reason string) string {
		return fmt.Sprintf(`{"level":"info","ts":%.6f,"caller":"a.go:1","msg":%q,"rule":"all","reason":%q}`+"\n",
			float64(began.Add(after).UnixMicro())/1e6, message, reason)
	}
	text := line(100*ms, changed, "path path2 joined the set: packets became slow") +
		line(200*ms, "something else", "path path3 joined the set: no") + "no JSON\n" +
		line(300*ms, changed, "ordered: all") +
		line(350*ms, changed, "path path2 left the set: the other paths suffice") + `{"msg":"not yet`
	var log changeLog
	for i := 0; i < len(text); i += 7 {
		if n, err := log.Write([]byte(text[i:min(i+7, len(text))])); n == 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	want := changes{{100 * ms, 1, true}, {350 * ms, 1, false}}
	if got := log.since(began); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, expected %v", got, want)
	}
}

// TestChanges answers the questions of the claims about a run: at 1 s, path 1 varies until 3 s.
func TestChanges(t *testing.T) {
	list := changes{{1080 * ms, 1, true}, {1080 * ms, 2, true}, {1300 * ms, 2, false}, {1400 * ms, 0, false},
		{4300 * ms, 0, true}, {5100 * ms, 1, false}}
	for _, test := range []struct {
		what      string
		got, want any
	}{
		{"paths before the variation", countOf(list.at(1000*ms, 0)), 1},
		{"paths at its start", countOf(list.at(1100*ms, 0)), 3},
		{"paths at its end", countOf(list.at(3000*ms, 0)), 1},
		{"start", durationOf(list.started(1000*ms, time.Second)), 80 * ms},
		{"start of copies that are on", durationOf(list.started(1100*ms, time.Second)), time.Duration(0)},
		{"start that does not happen", durationOf(list.started(6000*ms, time.Second)), time.Second},
		{"start after the limit", durationOf(list.started(0, time.Second)), time.Second},
		{"stays of path 3", list.stays(2, 0, 6*time.Second), []time.Duration{220 * ms}},
		{"stays of path 1", list.stays(0, 0, 6*time.Second), []time.Duration{1700 * ms}},
		{"stays of path 2 from 2 s", list.stays(1, 2*time.Second, 6*time.Second), []time.Duration(nil)},
	} {
		if !reflect.DeepEqual(test.got, test.want) {
			t.Errorf("%s: %v, expected %v", test.what, test.got, test.want)
		}
	}
	for _, test := range []struct {
		at, after time.Duration
		outside   bool
	}{{3000 * ms, 1300 * ms, true}, {1200 * ms, 0, false}, {1500 * ms, 2 * time.Second, true}} {
		after, outside := list.returned(0, test.at, 2*time.Second)
		if after != test.after || outside != test.outside {
			t.Errorf("path 1 after %v: %v, %t, expected %v, %t", test.at, after, outside, test.after, test.outside)
		}
	}
}

func countOf(n int, _ bool) int { return n }

func durationOf(d time.Duration, _ bool) time.Duration { return d }

// TestStarts: disturbances at which copies are on do not count.
func TestStarts(t *testing.T) {
	list := changes{{1080 * ms, 1, true}, {2 * time.Second, 1, false}}
	var s starts
	for begin, want := range map[time.Duration]time.Duration{time.Second: 80 * ms, 1500 * ms: 0,
		3 * time.Second: time.Second} {
		if got := s.add(list, begin, time.Second); got != want {
			t.Errorf("copies start %v after %v, expected %v", got, begin, want)
		}
	}
	if s.Count() != 2 || s.copying != 1 || s.Max() != time.Second {
		t.Errorf("%d starts, the longest %v, and %d with copies", s.Count(), s.Max(), s.copying)
	}
}
