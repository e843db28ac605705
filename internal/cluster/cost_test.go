package cluster

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/cluster/certificate"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/token"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestCosts measures the messages of a node with 100 rooms of 10 participants. docs/cluster.md has the figures.
func TestCosts(t *testing.T) {
	begin := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	r := New(Config{}, Self{Name: "node-1", Incarnation: uint64(begin.UnixMicro()), Description: Description{
		Region: "eu-west", URL: "wss://node-1.sfu.example.com:8080", Proxy: "node-1.sfu.example.com:7883",
		Trunk: "192.0.2.10:7883", Fingerprint: strings.Repeat("00:", 31) + "00",
	}}, begin)
	r.SetStatus(begin, Status{Load: 0.4375, JoinLoad: 0.0021, Rooms: 100, Participants: 1000})
	joins, bytes := 0, 0
	for i := range 100 {
		room := fmt.Sprintf("meeting-%d", i)
		if err := r.Enter(begin, room); err != nil {
			t.Fatal(err)
		}
		r.Messages(begin)
		for k := range 10 {
			identity := fmt.Sprintf("user-%d", k)
			p := Participant{Identity: identity, Session: rand.Text(), Joined: begin, Live: true,
				Permissions: signal.Permissions{Publish: true, Subscribe: true, Data: true}}
			body := bodyOf("body", uint64(k))
			for len(body.Description.Tiles) < 15 {
				body.Description.Tiles = append(body.Description.Tiles, volumetric.Tile{Label: "part",
					Box: volumetric.BoundingBox{Min: [3]float32{-0.25, 0, -0.25}, Max: [3]float32{0.25, 1.75, 0.25}}})
			}
			if err := r.Join(begin, room, p); err != nil {
				t.Fatal(err)
			}
			if err := r.Publish(begin, room, identity, body); err != nil {
				t.Fatal(err)
			}
			for _, out := range r.Messages(begin) {
				joins, bytes = joins+1, bytes+lengthOf(t, out.Message)
			}
		}
	}
	after := func(d time.Duration) int {
		r.Step(begin.Add(d))
		out := r.Messages(begin.Add(d))
		if len(out) != 1 || out[0].Message.Beat == nil {
			t.Fatalf("%d messages with a beat", len(out))
		}
		return lengthOf(t, out[0].Message)
	}
	busy, idle := after(500*time.Millisecond), after(2*time.Second)
	digest := lengthOf(t, &Message{Node: "node-1", Incarnation: 1, Digest: r.journal.whole()})
	l := r.journal.rooms["meeting-0"]
	snapshot := lengthOf(t, &Message{Node: "node-1", Incarnation: 1, Snapshot: l.snapshot()[0]})
	t.Logf("beat without changes: %d bytes; while all 100 rooms change: %d; digest: %d", idle, busy, digest)
	t.Logf("join with a publication of 15 tiles: %.2f messages, %d bytes; snapshot of a room of 10: %d bytes",
		float64(joins)/1000, bytes/1000, snapshot)
	if joins != 1000 {
		t.Errorf("%d messages for 1,000 joins, expected one each", joins)
	}
	if idle > 700 {
		t.Errorf("a beat without changes has %d bytes, expected at most 700", idle)
	}
}

// TestLongestMessages encodes the longest messages of each kind.
func TestLongestMessages(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	j := newJournal()
	keys := map[string]uint64{}
	for i := range MaxRooms {
		room := fmt.Sprintf("%d", i)
		j.enter(room, RoomKey(room))
		if i < maxChanged {
			keys[RoomKey(room)] = 1 << 40
		}
	}
	j.sequence = 1 << 40
	j.flush(now)
	name := strings.Repeat(`"`, volumetric.MaxNameLength)
	beat := &Message{Beat: &Beat{Changed: keys}}
	for range maxSuspects {
		beat.Beat.Suspects = append(beat.Beat.Suspects, strings.Repeat("n", certificate.MaxName))
	}
	for range maxTombstones {
		beat.Tombstones = append(beat.Tombstones, Tombstone{Kind: TombstoneSession, Room: name, Identity: name,
			Session: strings.Repeat("s", maxSessionBytes), At: now, Until: now})
	}
	rooms := &Request{Digest: true}
	for range maxRequested {
		rooms.Rooms = append(rooms.Rooms, name)
	}
	longest := bodyOf(name, 1<<40)
	longest.Description.Tiles = nil
	for range volumetric.MaxTiles {
		longest.Description.Tiles = append(longest.Description.Tiles, volumetric.Tile{Label: name,
			Box: volumetric.BoundingBox{Min: [3]float32{-1.2345678e-20, -1.2345678e-20, -1.2345678e-20},
				Max: [3]float32{1.2345678e20, 1.2345678e20, 1.2345678e20}}})
	}
	for len(longest.Description.Qualities) < volumetric.MaxQualities {
		longest.Description.Qualities = append(longest.Description.Qualities,
			volumetric.QualityLevel{Name: name, Bitrate: 1e9})
	}
	var changes []Change
	for range 8 {
		changes = append(changes, Change{Publisher: name, Publication: &longest})
	}
	messages := map[string]*Message{"digest": {Digest: j.whole()}, "beat": beat, "request": {Request: rooms}}
	for i, piece := range split(changes) {
		messages[fmt.Sprintf("delta %d", i)] = &Message{Delta: &Delta{Room: name, Sequence: 1 << 40, Changes: piece}}
	}
	for kind, m := range messages {
		m.Node, m.Incarnation = "node", 1
		t.Logf("%s: %d bytes", kind, lengthOf(t, m))
	}
}

func lengthOf(t *testing.T, m *Message) int {
	t.Helper()
	if m.Node == "" {
		m.Node, m.Incarnation = "node", 1
	}
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(data); err != nil {
		t.Fatal(err)
	}
	return len(data)
}

// TestTokensOfBans checks that the ban of every valid token reaches the other nodes.
func TestTokensOfBans(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	long := strings.Repeat("x", maxText)
	for id, valid := range map[string]bool{long: true, long + "x": false} {
		ban := Tombstone{Kind: TombstoneKick, Room: "r", Identity: "ann", At: now, Until: now, TokenID: id}
		claims := token.Claims{ID: id, Identity: "ann", Room: "r"}
		if sent, issued := ban.validate() == nil, claims.Validate() == nil; sent != valid || issued != valid {
			t.Errorf("an id of %d bytes: the ban is sent: %t, the token is valid: %t, expected %t", len(id), sent,
				issued, valid)
		}
	}
}

// TestLimitsOfKinds checks that a flood of messages of one kind does not make a node refuse those of another.
func TestLimitsOfKinds(t *testing.T) {
	now := time.Unix(0, 0)
	r := New(Config{}, Self{Name: "a", Incarnation: 1}, now)
	number := uint64(0)
	beat := func() error {
		number++
		return r.Receive(now, &Message{Node: "b", Incarnation: 1, Beat: &Beat{Number: number, Version: Version,
			Oldest: Oldest}})
	}
	if err := beat(); err != nil {
		t.Fatal(err)
	}
	flood := func(m Message, most int) {
		t.Helper()
		for i := range most + 1 {
			m := m
			m.Node, m.Incarnation = "b", 1
			if err := r.Receive(now, &m); errors.Is(err, ErrLimited) != (i == most) {
				t.Fatalf("message %d of %d: %v", i, most, err)
			}
		}
	}
	limits := Config{}.withDefaults()
	record := &SessionRecord{Room: "r", Identity: "ann", Session: "s", Number: 1}
	flood(Message{Session: record}, limits.SessionBurst)
	request := &Request{Rooms: []string{"r"}}
	flood(Message{Request: request}, limits.MessageBurst)
	if err := beat(); err != nil {
		t.Errorf("a beat after many messages: %v", err)
	}
	for range limits.BeatBurst {
		_ = beat()
	}
	if err := beat(); !errors.Is(err, ErrLimited) {
		t.Errorf("a beat after %d beats at once: %v", limits.BeatBurst, err)
	}
	now = now.Add(time.Second)
	if err := r.Receive(now, &Message{Node: "b", Incarnation: 1, Session: record}); err != nil {
		t.Errorf("a record after a second: %v", err)
	}
}
