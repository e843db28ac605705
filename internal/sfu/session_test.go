package sfu

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/internal/sfu/sessionrecord"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestSessionStatesAreRare checks that a record follows each change, at most twice per second, and that nothing is told
// without a change, or because the viewpoint moves.
func TestSessionStatesAreRare(t *testing.T) {
	c := newConference(t, nil, "a", "b")
	alice := c.enter(c[0], "alice", true, true, ladder(2, 3))
	if n := len(c[0].states); n != 1 {
		t.Fatalf("%d states after the join", n)
	}
	look := func(x float64) {
		alice.say(&signal.Viewpoint{
			Position: signal.Vector{x, 0, 0}, Orientation: signal.Rotation{0, 0, 0, 1}, FOV: 60, Aspect: 1,
		})
	}
	for i := range 500 {
		look(float64(i))
		c.pass(10 * time.Millisecond)
	}
	if n := len(c[0].states); n != 2 {
		t.Errorf("%d states after 5 s of motion, expected those of the join and of the first viewpoint", n)
	}
	c.pass(viewpointInterval)
	if n := len(c[0].states); n != 3 {
		t.Errorf("%d states %v after the motion, expected one of the viewpoint", n, viewpointInterval)
	}
	for i := range 500 {
		alice.say(&signal.SetLimits{BitrateLimits: signal.BitrateLimits{Max: 1e6 + volumetric.Bitrate(i)}})
		c.pass(10 * time.Millisecond)
	}
	if n := len(c[0].states); n < 13 || n > 15 {
		t.Errorf("%d states after 5 s of changes, expected two per second", n-3)
	}
	c.pass(time.Second)
	before := len(c[0].states)
	last, err := sessionrecord.Decode(c[0].states[before-1].State)
	if err != nil {
		t.Fatal(err)
	}
	if last.Viewpoint.Position[0] != 499 || last.Join.Publications[0].Name != "body" {
		t.Errorf("the last record is %+v", last)
	}
	look(499)
	c.pass(time.Second)
	if n := len(c[0].states); n != before {
		t.Errorf("%d states without a change", n-before)
	}
	c[0].stage.ask(saveRequest{}.apply)
	alice.say(&signal.SetLimits{BitrateLimits: signal.BitrateLimits{Max: 9e6}})
	c[0].stage.ask(saveRequest{}.apply)
	c.exchange()
	if n := len(c[0].states); n != before+1 {
		t.Errorf("%d states before a drain, expected 1", n-before)
	}
	// A record that is too large is told as absent.
	var choices []signal.Choice
	for i := range 100 {
		choices = append(choices, signal.Choice{
			PublicationRef: volumetric.PublicationRef{
				Participant: fmt.Sprint(i) + strings.Repeat("x", 100), Publication: strings.Repeat("\"", 100),
			},
			Quality: signal.Only(1),
		})
	}
	alice.say(&signal.SetQuality{Choices: choices})
	c.pass(time.Second)
	whole := c[0].states[len(c[0].states)-1]
	if whole.State == nil {
		t.Fatal("a record of 100 choices is too large")
	}
	alice.participant.arrangement = make([]signal.Placement, 1000)
	c[0].stage.ask(func(r *Room) { r.span.stateChanged(alice.participant) })
	c.pass(time.Second)
	if s := c[0].states[len(c[0].states)-1]; s.State != nil {
		t.Errorf("a state of %d bytes", len(s.State))
	}
}

// TestUnsavedSessionsWakeTheRoomTogether checks that the records of many participants that change at different times
// wake the room at most twice per second, and that the record of a join does not wait.
func TestUnsavedSessionsWakeTheRoomTogether(t *testing.T) {
	c := newConference(t, nil, "a", "b")
	var all []*player
	for i := range 20 {
		all = append(all, c.enter(c[0], fmt.Sprint("p", i), false, false))
		c.pass(25 * time.Millisecond)
		if n := len(c[0].states); n < i+1 {
			t.Fatalf("%d states after %d joins", n, i+1)
		}
	}
	c.pass(time.Second)
	before, bursts, told := len(c[0].states), 0, 0
	for i := range 200 {
		all[i%len(all)].say(&signal.SetLimits{BitrateLimits: signal.BitrateLimits{Max: 1e6 + volumetric.Bitrate(i)}})
		c.pass(10 * time.Millisecond)
		if n := len(c[0].states) - before; n > told {
			told = n
			bursts++
		}
	}
	if bursts < 4 || bursts > 6 {
		t.Errorf("the room tells records %d times in 2 s, expected twice per second", bursts)
	}
}

// BenchmarkUnsaved measures the search for records that are due, after each request, in a room with 100 participants
// whose records have changed.
func BenchmarkUnsaved(b *testing.B) {
	now := time.Unix(1, 0)
	s := &span{room: &Room{now: now, wakeAt: now}}
	s.unsaved.due = now.Add(recordInterval)
	for range 100 {
		p := &participant{profile: &Profile{Resumes: true}}
		p.saving.hash = 1
		s.stateChanged(p)
	}
	for b.Loop() {
		s.save()
	}
	if n := len(s.unsaved.participants); n != 100 {
		b.Fatalf("%d participants wait, expected 100", n)
	}
}

// TestStatesWithoutACluster checks that a room without a cluster does nothing for records.
func TestStatesWithoutACluster(t *testing.T) {
	s := newStage(t, nil)
	alice := s.enter("alice", true, true)
	m := &signal.Viewpoint{Orientation: signal.Rotation{0, 0, 0, 1}, FOV: 60, Aspect: 1}
	if n := testing.AllocsPerRun(100, func() {
		s.room.span.stateChanged(alice.participant)
		s.room.span.save()
		s.room.audience.send()
	}); n != 0 {
		t.Errorf("%g allocations per message", n)
	}
	alice.say(m)
	if alice.viewpoint != nil || alice.saving != (saving{}) {
		t.Error("the viewpoint is kept for a record")
	}
}

// adopt continues a session on a node.
func adopt(t *testing.T, n *Node, a *Adoption, resume *signal.ResumeRequest, grants Grants) (*Session, *shelf) {
	t.Helper()
	o := &shelf{}
	s, refused := n.Join(JoinRequest{
		Join: &signal.Join{Version: signal.Version, Header: signal.Header{ID: "7"}, Resume: resume},
		Room: "room", Identity: "alice", OwnsIdentity: true, Grants: grants, Outbox: o, At: time.Now(), Adopt: a,
	})
	if refused != nil {
		t.Fatal(refused)
	}
	return s, o
}

// fullRecord returns a record with all fields.
func fullRecord() *sessionrecord.Record {
	yes, tile := true, 1
	c := &sessionrecord.Record{
		Join: signal.Join{
			Version: signal.Version, Room: "room", Identity: "alice", Receive: true, ReceiveData: true,
			DataChannel: true, MessageChannel: true, Pauses: true, FrameTimes: true, DeadlineMS: 100,
			Multipath:     &signal.Multipath{Redundancy: signal.RedundancyAll},
			BitrateLimits: signal.BitrateLimits{Max: 5e6, Min: 1e6, Start: 2e6},
			Publications:  []volumetric.Publication{ladder(2, 3)},
		},
		Joined: start, Permissions: signal.SetPermissions{Publish: &yes},
		Attributes:  map[string]string{"name": "Älice <&>"},
		Muted:       []signal.MuteState{{Publication: "body", Own: true, Operator: true}},
		Poses:       []signal.Pose{{Publication: "body", Orientation: signal.Rotation{0, 0, 0, 1}, Scale: 2}},
		Viewpoint:   &signal.Viewpoint{At: 5, Orientation: signal.Rotation{0, 0, 0, 1}, FOV: 60, Aspect: 1.5},
		Arrangement: []signal.Placement{{PublicationRef: bodyRef, Orientation: signal.Rotation{0, 0, 0, 1}}},
		Traced:      true, DataReceived: 7, DataSent: 1 << 40,
	}
	choices := newStored(choiceOf(-1, signal.Auto()), signal.Choice{
		PublicationRef: bodyRef, Tile: &tile, Quality: several(0, 2),
	})
	c.Choices = choices
	return c
}

// TestASessionContinuesFromItsRecord checks the state of a session on a node that has a record and no mirror.
func TestASessionContinuesFromItsRecord(t *testing.T) {
	node := joinedNodes(t, "b")[0]
	c := fullRecord()
	c.Join.ReceiveData, c.Join.DataChannel = false, false
	received := int64(33)
	resume := &signal.ResumeRequest{Session: "session", Secret: "x", NewConnection: true, DataReceived: &received}
	s, o := adopt(t, node, &Adoption{Session: "session", Secret: "secret", Epoch: 3, Record: c}, resume,
		Grants{Publish: false, Subscribe: true, Data: true})
	joined := expect[*signal.Joined](t, o, 1)
	if !joined.Resumed || joined.Restored != nil || joined.DataReceived != 7 || joined.ID != "7" ||
		joined.Attributes["name"] != "Älice <&>" || len(joined.Muted) != 1 || !joined.Permissions.Publish {
		t.Errorf("the reply is %+v", joined)
	}
	if m := expect[*signal.Wanted](t, o, 1); m.Publications[0].Publication != "body" {
		t.Errorf("the wanted tracks are %+v", m)
	}
	// No other participant wants the times of frames.
	if m := expect[*signal.Trace](t, o, 1); m.FrameTimes {
		t.Error("times of frames are still requested")
	}
	inRoom(t, s, func(r *Room) {
		p := r.participants["alice"]
		if p.Session != "session" || p.former != "secret" || p.epoch != 3 || !p.joined.Equal(start) {
			t.Errorf("the session is %q since %v, epoch %d", p.Session, p.joined, p.epoch)
		}
		want, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		present := p.record()
		present.DataSent, present.Traced = c.DataSent, c.Traced
		got, err := json.Marshal(present)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("the state is\n%s, expected\n%s", got, want)
		}
		if !p.subscriber.Looks() {
			t.Error("the viewpoint is lost")
		}
		if lossy := r.nextLossy("alice"); p.data.Sent.Last() != 33 || lossy != 3<<32+1 {
			t.Errorf("reliable messages continue after %d, lossy messages at %d", p.data.Sent.Last(), lossy)
		}
	})
}

// TestASessionContinuesWithoutItsRecord checks that a client whose state is lost publishes again.
func TestASessionContinuesWithoutItsRecord(t *testing.T) {
	nodes := joinedNodes(t, "a", "b")
	second := bodyOf(1, 2)
	second.Name = "desk"
	_, aliceBox := enter(t, nodes[0], "alice", false, bodyOf(1, 2), second)
	joined := expect[*signal.Joined](t, aliceBox, 1)
	carol, carolBox := enter(t, nodes[1], "carol", true)
	knows(t, carolBox, "alice", 2)
	tracks := tracksOn(t, carol)
	s, o := adopt(t, nodes[1], &Adoption{Session: joined.Session, Epoch: 1}, nil, Grants{Publish: true})
	if m := expect[*signal.Joined](t, o, 1); m.Restored == nil || *m.Restored {
		t.Error("the lost state is not reported")
	}
	other := second
	other.Qualities = make([]volumetric.QualityLevel, 3)
	for i, each := range []volumetric.Publication{bodyOf(1, 2), other} {
		handle(s, &signal.Publish{Header: signal.Header{ID: fmt.Sprint(i)}, Publication: each})
	}
	expect[*signal.OK](t, o, 2)
	if m := expect[*signal.Unpublished](t, carolBox, 1); m.Publication != "desk" {
		t.Errorf("the publication %q has ended", m.Publication)
	}
	if got := tracksOn(t, carol); len(got) != 2 || got[0] != tracks[0] {
		t.Error("the publication with the same description has other tracks")
	}
	handle(s, &signal.Publish{Publication: bodyOf(1, 2)})
	if m := expect[*signal.Error](t, o, 1); m.Code != signal.CodeExists {
		t.Errorf("a second repetition is answered with %+v", m)
	}
}

// completions is a Cluster that notes when the state of a participant is told first, and when it is told as complete.
type completions struct {
	Cluster
	mu              sync.Mutex
	first, complete time.Time
}

// Tell implements Cluster.
func (c *completions) Tell(room string, e roomevent.Event) {
	if e, ok := e.(roomevent.Present); ok {
		c.mu.Lock()
		if c.first.IsZero() {
			c.first = time.Now()
		}
		if e.Complete && c.complete.IsZero() {
			c.complete = time.Now()
		}
		c.mu.Unlock()
	}
	c.Cluster.Tell(room, e)
}

// after returns the time from the first state to the complete one, false if none was complete.
func (c *completions) after() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.complete.Sub(c.first), !c.complete.IsZero()
}

// TestALostSessionIsCompleteLater: without a record the client publishes its publications again, and the node tells
// only later that they are complete. With a record they are complete at once.
func TestALostSessionIsCompleteLater(t *testing.T) {
	for _, record := range []*sessionrecord.Record{nil, fullRecord()} {
		told := &completions{}
		node := joinedNodesWith(t, func(_ string, c *Config) { told.Cluster, c.Cluster = c.Cluster, told }, "b")[0]
		adopt(t, node, &Adoption{Session: "session", Epoch: 1, Record: record}, nil, Grants{Publish: true})
		if _, complete := told.after(); record != nil && !complete {
			t.Error("the publications of a record are not complete at once")
		}
		eventually(t, func() bool { _, complete := told.after(); return complete }, "the publications to be complete")
		if d, _ := told.after(); record == nil && d < completeAfter {
			t.Errorf("a lost session is complete after %v, expected %v", d, completeAfter)
		}
	}
}

// FuzzSessionRecord gives a room each record that is valid.
func FuzzSessionRecord(f *testing.F) {
	text, err := json.Marshal(fullRecord())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"join":{"version":1},"choices":[{"participant":"a","publication":"b","tiles":{"-1":3}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := sessionrecord.Decode(data)
		if err != nil {
			return
		}
		s := newStage(t, nil)
		s.ask(func(r *Room) {
			p := s.enter("bob", true, false).participant
			(&Adoption{Session: "s", Epoch: 1, Record: c}).begin(p, nil, nil)
		})
	})
}
