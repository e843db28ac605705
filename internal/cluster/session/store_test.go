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
		for _, node := range s.Nodes {
			list = append(list, fmt.Sprintf("%s:%s/%d %s", node, s.Record.Session, s.Record.Number, s.Record.State))
			if s.Record.Ended {
				list[len(list)-1] += "ended"
			}
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
	if sending, ok := s.Share("s", "e"); !ok || !slices.Equal(sending.Nodes, []string{"e"}) {
		t.Errorf("the record is not shared: %v", sending)
	}
	if _, ok := s.Share("s", "e"); ok {
		t.Error("the record is shared twice")
	}
	s.Returned(now, cluster.Home{Node: "c"})
	expect("a node that returns", "c:s/2 two")
	s.Set(record("s", 0, 0, "three"))
	expect("a change before the session has moved", "c:s/3 three", "d:s/3 three", "e:s/3 three")
	now = now.Add(refreshInterval)
	expect("after a minute", "c:s/3 three", "d:s/3 three", "e:s/3 three")
	now = now.Add(refreshInterval)
	s.sweep(now)
	s.End("s")
	expect("the end, before the repetition", "b:s/4 ended", "c:s/4 ended", "d:s/4 ended", "e:s/4 ended")
	if _, _, found := s.Get("s"); found || s.Waiting() {
		t.Error("the session has not ended")
	}
}

// TestSendRate: the records that are sent are limited by time, not by steps, and by bytes. A session that changes while
// it waits is sent once, with its latest state.
func TestSendRate(t *testing.T) {
	s, now := New(cluster.Home{Node: "a"}, 10*time.Second), begin
	keepers := func(string, string) []string { return []string{"b", "c"} }
	const sessions = 1000
	sent, latest := 0, 0
	run := func(d time.Duration) {
		for end := now.Add(d); now.Before(end); now = now.Add(time.Millisecond) {
			for _, next := range s.Step(now, keepers) {
				sent += len(next.Nodes)
				if string(next.Record.State) == "second" {
					latest++
				}
			}
		}
	}
	for _, state := range []string{"first", "second"} {
		for i := range sessions {
			s.Set(record(fmt.Sprint(i), 0, 0, state))
		}
	}
	run(time.Second)
	if sent < sentRate || sent > sentRate+sentBurst {
		t.Errorf("%d messages in the first second, expected %d to %d", sent, sentRate, sentRate+sentBurst)
	}
	run(7 * time.Second)
	if sent != 2*sessions || latest != sessions || s.Waiting() {
		t.Errorf("%d messages and %d latest states, expected %d and %d", sent, latest, 2*sessions, sessions)
	}
	sent = 0
	large := string(make([]byte, cluster.MaxSessionState))
	for i := range sessions {
		s.Set(record(fmt.Sprint(i), 0, 0, large))
	}
	run(time.Second)
	if most := (bytesRate + bytesBurst) / cluster.MaxSessionState; sent < most/2 || sent > most {
		t.Errorf("%d messages of %d bytes in a second, expected at most %d", sent, len(large), most)
	}
}

// TestEndsDoNotDelayRecords: the record of a session does not wait for the end of 1,000 others, which wait for the
// limit of messages. Ends beyond maxEnds are dropped.
func TestEndsDoNotDelayRecords(t *testing.T) {
	s, now := New(cluster.Home{Node: "a"}, 10*time.Second), begin
	keepers := func(string, string) []string { return []string{"b"} }
	ended := 0
	run := func(d time.Duration, found func(Sending) bool) (took time.Duration, ok bool) {
		for took = range d / time.Millisecond {
			now = now.Add(time.Millisecond)
			for _, next := range s.Step(now, keepers) {
				if next.Record.Ended {
					ended++
				}
				ok = ok || found(next)
			}
			if ok {
				return took * time.Millisecond, true
			}
		}
		return 0, false
	}
	none := func(Sending) bool { return false }
	const sessions = 1000
	for i := range sessions {
		s.Set(record(fmt.Sprint(i), 0, 0, "x"))
	}
	run(5*time.Second, none)
	for i := range sessions {
		s.End(fmt.Sprint(i))
	}
	run(time.Second, none)
	s.Set(record("live", 0, 0, "x"))
	took, ok := run(time.Second, func(next Sending) bool { return next.Record.Session == "live" })
	if !ok || took > 20*time.Millisecond {
		t.Errorf("the record was sent after %v: %t", took, ok)
	}
	run(5*time.Second, none)
	if ended != sessions || s.Waiting() {
		t.Errorf("%d ends, expected %d", ended, sessions)
	}

	s.Set(record("back", 1, 0, "x"))
	run(time.Second, none)
	s.End("back")
	s.Set(record("back", 1, 0, "y"))
	if got, want := sent(s.Step(now, keepers)), []string{"b:back/3 y"}; !slices.Equal(got, want) {
		t.Errorf("a session that returns before its end is sent: %q, expected %q", got, want)
	}
	s.End("back")
	s.Set(record("back", 1, 0, "z"))
	s.Share("back", "b")
	s.End("back")
	if n := len(s.ends); n != 1 {
		t.Errorf("%d ends of one session wait", n)
	}
	if got, want := sent(s.Step(now, keepers)), []string{"b:back/6 ended"}; !slices.Equal(got, want) {
		t.Errorf("a session that ends twice is sent: %q, expected %q", got, want)
	}

	s.Set(record("again", 1, 0, "x"))
	run(time.Second, none)
	s.End("again")
	s.Set(record("again", 1, 0, "y"))
	s.End("again")
	if got, want := sent(s.Step(now, keepers)), []string{"b:again/4 ended"}; !slices.Equal(got, want) {
		t.Errorf("a session that returns and ends before its end is sent: %q, expected %q", got, want)
	}

	for i := range maxEnds + 10 {
		id := fmt.Sprint("many ", i)
		s.Set(record(id, 0, 0, "x"))
		s.Share(id, "b")
		s.End(id)
	}
	if n := len(s.ends); n != maxEnds || s.Counts().Dropped != 10 {
		t.Errorf("%d ends wait and %d are dropped, expected %d and 10", n, s.Counts().Dropped, maxEnds)
	}
}

// TestCheckRooms: only the sessions of the rooms that nodes have entered or left are examined, and a step examines a
// limited number of sessions.
func TestCheckRooms(t *testing.T) {
	s, now, examined := New(cluster.Home{Node: "a"}, 10*time.Second), begin, 0
	keepers := func(string, string) []string {
		examined++
		return []string{"b"}
	}
	expect := func(why string, want int) {
		t.Helper()
		examined = 0
		for s.Waiting() {
			before := examined
			s.Step(now, keepers)
			if n := examined - before; n > checkedPerStep {
				t.Errorf("%s: a step examines %d sessions, expected at most %d", why, n, checkedPerStep)
			}
			now = now.Add(20 * time.Millisecond)
		}
		if examined != want {
			t.Errorf("%s: %d sessions are examined, expected %d", why, examined, want)
		}
	}
	for i := range 300 {
		r := record(fmt.Sprint(i), 0, 0, "x")
		r.Room = fmt.Sprint("room ", i%100)
		s.Set(r)
	}
	expect("at first", 300)
	s.CheckRooms(nil)
	expect("no room", 0)
	s.CheckRooms([]string{"room 7", "room 8"})
	expect("two rooms", 6)
	s.Check()
	expect("all nodes", 300)
}

// BenchmarkRegroup measures the change of the nodes of one room, at a node with 1,000 sessions in 100 rooms.
func BenchmarkRegroup(b *testing.B) {
	s, now := New(cluster.Home{Node: "a"}, 10*time.Second), begin
	var nodes []string
	for i := range 50 {
		nodes = append(nodes, fmt.Sprint("node-", i))
	}
	keepers := func(_, session string) []string { return Keepers(session, nil, nodes) }
	for i := range 1000 {
		r := record(fmt.Sprint(i), 0, 0, "x")
		r.Room = fmt.Sprint("room ", i%100)
		s.Set(r)
	}
	step := func() {
		for s.Waiting() {
			s.Step(now, keepers)
			now = now.Add(20 * time.Millisecond)
		}
	}
	step()
	for _, test := range []struct {
		name   string
		change func()
	}{{"room", func() { s.CheckRooms([]string{"room 7"}) }}, {"nodes", s.Check}} {
		b.Run(test.name, func(b *testing.B) {
			for b.Loop() {
				test.change()
				step()
			}
		})
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
	s.Release("s", 1)
	expect("a session that has returned", "a", "own")
	s.Release("s", 2)
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
