package session

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/cluster"
)

var (
	begin = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	other = cluster.Home{Node: "b", Incarnation: 1}
)

func record(session string, epoch, number uint64, state string) cluster.SessionRecord {
	return cluster.SessionRecord{Room: "r", Identity: "ann", Session: session, Epoch: epoch, Number: number,
		State: []byte(state)}
}

func sent(sendings []Sending) (list []string) {
	for _, s := range sendings {
		list = append(list, fmt.Sprintf("%s:%s/%d %s", s.Node, s.Record.Session, s.Record.Number, s.Record.State))
		if s.Record.Ended {
			list[len(list)-1] += "ended"
		}
	}
	return list
}

// TestSend: a record is sent at a change, to a new keeper, after the return of a node, and every minute.
func TestSend(t *testing.T) {
	s, now, keepers := New(cluster.Home{Node: "a"}, 10*time.Second), begin, []string{"b", "c"}
	expect := func(why string, want ...string) {
		t.Helper()
		got := sent(s.Step(now, func(string, string) []string { return keepers }))
		if !slices.Equal(got, want) {
			t.Errorf("%s: sent %q, expected %q", why, got, want)
		}
	}
	s.Set(record("s", 0, 0, "one"))
	s.Set(record("s", 0, 0, "two"))
	expect("the latest of two changes", "b:s/2 two", "c:s/2 two")
	expect("no change")
	keepers = []string{"c", "d"}
	s.Check()
	expect("a new keeper", "d:s/2 two")
	if sending, ok := s.Share("s", "e"); !ok || sending.Node != "e" {
		t.Errorf("the record is not shared: %v", sending)
	}
	if _, ok := s.Share("s", "e"); ok {
		t.Error("the record is shared twice")
	}
	s.Returned(now, cluster.Home{Node: "c"})
	expect("a node that returns", "c:s/2 two")
	now = now.Add(refreshInterval)
	expect("after a minute", "c:s/2 two", "d:s/2 two")
	s.End("s")
	expect("the end", "c:s/3 ended", "d:s/3 ended")
	if _, _, found := s.Get("s"); found || s.Waiting() {
		t.Error("the session has not ended")
	}
	for i := range sentPerStep {
		s.Set(record(fmt.Sprint(i), 0, 0, "x"))
	}
	if n := len(s.Step(now, func(string, string) []string { return keepers })); n != sentPerStep || !s.Waiting() {
		t.Errorf("one step sends %d records, expected %d", n, sentPerStep)
	}
}

// TestKeep: of the records of a session the highest epoch counts, then the latest of its home. Records expire.
func TestKeep(t *testing.T) {
	s, now := New(cluster.Home{Node: "a"}, 10*time.Second), begin
	expect := func(why, home, state string) {
		t.Helper()
		from, r, found := s.Get("s")
		if found != (home != "") || from.Node != home || string(r.State) != state {
			t.Errorf("%s: the record is %q of %q, expected %q of %q", why, r.State, from.Node, state, home)
		}
	}
	third := cluster.Home{Node: "c", Incarnation: 1}
	s.Receive(now, other, record("s", 0, 5, "five"))
	s.Receive(now, other, record("s", 0, 4, "four"))
	expect("an earlier record", "b", "five")
	s.Receive(now, third, record("s", 1, 1, "next home"))
	s.Receive(now, other, record("s", 0, 6, "six"))
	expect("a lower epoch", "c", "next home")
	s.Receive(now, other, record("s", 1, 1, "also adopted"))
	s.Receive(now, third, record("s", 1, 2, "later"))
	expect("the lower name at the same epoch", "b", "also adopted")
	s.Set(record("s", 2, 0, "own"))
	expect("the own record", "a", "own")
	s.Release("s")
	expect("a released record", "b", "also adopted")

	s.Lost(now, other)
	now = now.Add(9 * time.Second)
	s.Step(now, nil)
	expect("within the grace time", "b", "also adopted")
	s.Returned(now, other)
	now = now.Add(10 * time.Second)
	s.Step(now, nil)
	expect("a node that has returned", "b", "also adopted")
	now = now.Add(forgetAfter)
	s.Step(now, nil)
	expect("a record that is not repeated", "", "")

	s.Receive(now, other, record("s", 0, 1, "one"))
	end := record("s", 0, 2, "")
	end.Ended = true
	s.Receive(now, other, end)
	expect("a session that has ended", "", "")
	if c := s.Counts(); c != (Counts{}) || len(s.nodes) != 0 {
		t.Errorf("the counts are %+v", c)
	}
}

// TestLimits: one node cannot fill the memory or displace the records of another.
func TestLimits(t *testing.T) {
	s := New(cluster.Home{Node: "a"}, 10*time.Second)
	large := string(make([]byte, cluster.MaxSessionState))
	count := nodeBytes / (len(large) + overhead)
	for i := range count + 3 {
		s.Receive(begin, other, record(fmt.Sprint(i), 0, 1, large))
	}
	for i := range nodeRecords + 5 {
		s.Receive(begin, cluster.Home{Node: "c"}, record(fmt.Sprint("c", i), 0, 1, ""))
	}
	if c := s.Counts(); c.Dropped != 8 || c.Foreign != count+nodeRecords {
		t.Errorf("the counts are %+v, expected 8 dropped and %d kept", c, count+nodeRecords)
	}
}

func TestKeepers(t *testing.T) {
	nodes := []string{"b", "c", "d", "e"}
	ranking := Keepers("session", nil, nodes)
	if len(ranking) != ranked {
		t.Fatalf("the keepers are %v", ranking)
	}
	if got := Keepers("session", ranking[1:], nodes); !slices.Equal(got, []string{ranking[1], ranking[0]}) {
		t.Errorf("the keepers with one in the room are %v", got)
	}
	if got := Keepers("session", nil, nodes[:1]); !slices.Equal(got, nodes[:1]) {
		t.Errorf("the keepers among one node are %v", got)
	}
}
