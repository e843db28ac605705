package cluster

import (
	"bytes"
	"testing"
	"time"
)

// FuzzBeat, FuzzDelta, FuzzSnapshot and FuzzSession decode messages of one kind. A message that Decode accepts is
// encoded and decoded again with the same result, and a Replica receives it without a panic and within its limits.
func FuzzBeat(f *testing.F) {
	f.Add([]byte(`{"node":"b","incarnation":7,"beat":{"number":1,"version":1,"oldest":1,"sequence":0,"sum":0}}`))
	f.Add([]byte(`{"node":"b","incarnation":9,"beat":{"number":2,"version":2,"oldest":1,"gone":true,` +
		`"suspects":["a","c"],"sequence":4,"sum":5,"changed":{"0123456789abcdef":4,"fedcba9876543210":0}}}`))
	f.Add([]byte(`{"node":"a","incarnation":9,"beat":{"number":1,"version":9,"oldest":8}}`))
	f.Add([]byte(`{"node":"b","incarnation":7,"beat":{"number":3,"version":1,"oldest":1},"tombstones":[` +
		`{"kind":"room","room":"r","at":"2026-11-27T12:00:00Z"},{"kind":"later","room":"r","identity":"x"}]}`))
	f.Add([]byte(`{"node":"b","incarnation":7,"digest":{"sequence":3,"rooms":{"0123456789abcdef":3}}}`))
	f.Add([]byte(`{"node":"b","incarnation":7,"request":{"digest":true,"rooms":["r","s"]}}`))
	f.Fuzz(fuzzMessage)
}

func FuzzDelta(f *testing.F) {
	seed(f, &Message{Delta: &Delta{Room: "r", Sequence: 6, Changes: changesOf("user", "session")}})
	seed(f, &Message{Delta: &Delta{Room: "r", Sequence: 7, Previous: 5,
		Changes: []Change{{Left: "user"}, {Publisher: "other", Unpublished: "body"}}}})
	seed(f, &Message{Delta: &Delta{Room: "r", Sequence: 8, Previous: 5, Gone: true}})
	f.Add([]byte(`{"node":"b","incarnation":7,"delta":{"room":"r","sequence":6,"changes":[{},{"publisher":"x"}]}}`))
	f.Fuzz(fuzzMessage)
}

func FuzzSnapshot(f *testing.F) {
	seed(f, &Message{Snapshot: &Snapshot{Room: "r", Sequence: 6, Parts: 1, Changes: changesOf("user", "session")}})
	seed(f, &Message{Snapshot: &Snapshot{Room: "r", Sequence: 9, Part: 1, Parts: 2, Changes: changesOf("z", "s")}})
	f.Add([]byte(`{"node":"b","incarnation":7,"snapshot":{"room":"r","sequence":6,"part":-1,"parts":1000000}}`))
	f.Fuzz(fuzzMessage)
}

func FuzzSession(f *testing.F) {
	seed(f, &Message{Session: &SessionRecord{Room: "r", Identity: "ann", Session: "s", Number: 3,
		State: []byte(`{"choices":[1,2]}`)}})
	seed(f, &Message{Session: &SessionRecord{Room: "r", Identity: "ann", Session: "s", Number: 4, Ended: true}})
	seed(f, &Message{Delta: &Delta{Room: "r", Sequence: 6, Changes: []Change{{State: &RoomState{
		Metadata: map[string]string{"title": "one"}, MetadataAt: 5, Recording: 6}}}}})
	f.Add([]byte(`{"node":"b","incarnation":7,"session":{"room":"r","identity":"","session":"","state":null}}`))
	f.Fuzz(fuzzMessage)
}

func changesOf(identity, session string) []Change {
	body := bodyOf("body", 3)
	return []Change{{Participant: &Participant{Identity: identity, Session: session, Live: true}},
		{Publisher: identity, Publication: &body}}
}

func seed(f *testing.F, m *Message) {
	f.Helper()
	m.Node, m.Incarnation = "b", 7
	data, err := m.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
}

func fuzzMessage(t *testing.T, data []byte) {
	m, err := Decode(data)
	if err != nil {
		return
	}
	again, err := m.Encode()
	if err != nil {
		// A message with a time that JSON cannot hold, or one that becomes longer.
		return
	}
	second, err := Decode(again)
	if err != nil {
		t.Fatalf("%v in the encoding of %s: %s", err, data, again)
	}
	if third, err := second.Encode(); err != nil || !bytes.Equal(again, third) {
		t.Fatalf("%s becomes %s: %v", again, third, err)
	}
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	r := New(Config{MirrorBytes: 1 << 20}, Self{Name: "a", Incarnation: 8}, now)
	steps := []func() error{
		func() error { return r.Enter(now, "r") },
		func() error {
			return r.Join(now, "r", Participant{Identity: "user", Session: "own", Joined: now, Live: true})
		},
		func() error {
			return r.Receive(now, &Message{Node: "b", Incarnation: 7, Beat: &Beat{Number: 1, Version: 1, Oldest: 1}})
		},
		func() error {
			return r.Receive(now, &Message{Node: "b", Incarnation: 7, Delta: &Delta{Room: "r", Sequence: 5,
				Changes: changesOf("other", "theirs")}})
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		_ = r.Receive(now, m)
		r.Step(now)
		for _, out := range r.Messages(now) {
			if _, err := out.Message.Encode(); err != nil {
				t.Fatalf("%v in the reply to %s", err, data)
			}
		}
		r.Events()
		for _, p := range r.ordered {
			if p.weight < 0 || p.weight > 1<<20 {
				t.Fatalf("the mirrors of %v weigh %d after %s", p.home, p.weight, data)
			}
		}
		now = now.Add(time.Second)
	}
	// A node that is silent is dead after 10 s, or after 60 s if no node beats, and is forgotten 60 s later.
	for end := now.Add(3 * time.Minute); now.Before(end); now = now.Add(r.config.Beat) {
		r.Step(now)
		r.out = nil
		r.Events()
	}
	if nodes := r.Nodes(); len(nodes) > 0 {
		t.Fatalf("%v are remembered after three minutes of silence", nodes)
	}
}
