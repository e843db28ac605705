package sfu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/directory"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/webhook"
)

// diary records events of rooms.
type diary struct {
	mu     sync.Mutex
	events []webhook.Event
}

// RoomEvent implements Events.
func (d *diary) RoomEvent(e webhook.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
}

// lines returns the events as text, and checks that the events of each room id are numbered from 1.
func (d *diary) lines(t *testing.T) (lines []string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	last := make(map[string]uint64)
	for _, e := range d.events {
		if last[e.Room.ID]++; e.Sequence != last[e.Room.ID] || e.Room.ID == "" || e.At.IsZero() {
			t.Errorf("%+v is event %d of its room", e, last[e.Room.ID])
		}
		text := string(e.Kind) + " " + e.Room.Name
		if e.Participant != nil {
			text += " " + e.Participant.Identity
		}
		if e.Publication != nil {
			text += " " + e.Publication.Name
		}
		if e.Reason != "" {
			text += ": " + e.Reason
		}
		lines = append(lines, text)
	}
	return lines
}

// has waits for a number of events.
func (d *diary) has(t *testing.T, count int) {
	t.Helper()
	eventually(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.events) >= count
	}, "%d events", count)
}

func newEventfulNode(t *testing.T, adjust func(*Config)) (*Node, *diary) {
	t.Helper()
	d := &diary{}
	return newTestNode(t, mediaOnLoopback(), func(c *Config) {
		c.Events = d
		if adjust != nil {
			adjust(c)
		}
	}), d
}

// exists reports whether the test's room exists.
func exists(n *Node) bool {
	_, exists := n.rooms.Room("room")
	return exists
}

// TestEvents: the events of a room from its first join to its end, in their order. A resumed session and a refused join
// cause none.
func TestEvents(t *testing.T) {
	n, d := newEventfulNode(t, func(c *Config) { c.ParticipantsPerRoom = 2 })
	session, first := enter(t, n, "ada", false, bodyOf(1, 1))
	other, _ := enter(t, n, "bob", true)
	_, refused := n.Join(JoinRequest{Join: &signal.Join{Version: signal.Version}, Room: "room", Identity: "eve",
		Grants: Grants{Publish: true}, Outbox: &shelf{}, At: time.Now()})
	if refused == nil || refused.Code != signal.CodeLimit {
		t.Errorf("a third participant is refused with %v", refused)
	}
	session.Detach()
	session, _ = resume(t, n, "ada", first)
	desk := bodyOf(1, 1)
	desk.Name = "desk"
	handle(session, &signal.Publish{Publication: desk}, &signal.Unpublish{Publication: "body"})
	inRoom(t, session, func(r *Room) {
		r.emit(webhook.Event{Kind: webhook.RecordingStarted})
	})
	if err := n.Kick(t.Context(), "room", "ada", 0); err != nil {
		t.Error(err)
	}
	handle(other, &signal.Leave{})
	want := []string{
		"room_started room", "participant_joined room ada", "published room ada body", "participant_joined room bob",
		"published room ada desk", "unpublished room ada body", "recording_started room", "unpublished room ada desk",
		"participant_left room ada: removed by an operator", "participant_left room bob: left", "room_ended room",
	}
	d.has(t, len(want))
	if got := d.lines(t); !slices.Equal(got, want) {
		t.Errorf("the events are\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRefusedJoin: a join that is refused neither starts nor ends a room.
func TestRefusedJoin(t *testing.T) {
	n, d := newEventfulNode(t, func(c *Config) { c.DescriptionBytes = 1 })
	_, refused := n.Join(JoinRequest{
		Join: &signal.Join{Version: signal.Version, Publications: []volumetric.Publication{bodyOf(1, 1)}},
		Room: "room", Identity: "eve", Grants: Grants{Publish: true}, Outbox: &shelf{}, At: time.Now(),
	})
	if got := d.lines(t); refused == nil || len(got) > 0 || exists(n) {
		t.Errorf("refused with %v, events %q", refused, got)
	}
}

// TestAbandonedRoom: when a room's goroutine panics, the events of its participants precede its end.
func TestAbandonedRoom(t *testing.T) {
	guard := panics.NewGuard(func(panics.Report) {}, PanicPlaces...)
	n, d := newEventfulNode(t, func(c *Config) { c.Guard = guard })
	session, _ := enter(t, n, "ada", false, bodyOf(1, 1))
	session.room.post(inspection{look: func(*Room) { panic("test") }})
	want := []string{"room_started room", "participant_joined room ada", "published room ada body",
		"unpublished room ada body", "participant_left room ada: internal error of the server", "room_ended room"}
	d.has(t, len(want))
	if got := d.lines(t); !slices.Equal(got, want) {
		t.Errorf("the events are %q, expected %q", got, want)
	}
}

func set(t *testing.T, n *Node, s admission.RoomSettings, created bool) {
	t.Helper()
	got, err := n.SetRoom(t.Context(), "room", s, false)
	if err != nil || got != created {
		t.Fatalf("created: %t, %v, expected %t", got, err, created)
	}
}

// TestRoomOfAPI: a room of the API exists without participants until its empty time is over or it is closed. The
// settings limit participants and publications, and a second setting replaces the first.
func TestRoomOfAPI(t *testing.T) {
	n, d := newEventfulNode(t, func(c *Config) { c.AutoCreate = false })
	join := func(identity string, publications ...volumetric.Publication) *signal.Error {
		_, refused := n.Join(JoinRequest{
			Join: &signal.Join{Version: signal.Version, Publications: publications}, Room: "room", Identity: identity,
			Grants: Grants{Publish: true}, Outbox: &shelf{}, At: time.Now(),
		})
		return refused
	}
	if refused := join("ada"); refused == nil || refused.Code != signal.CodeNotFound {
		t.Errorf("a join without a room: %v", refused)
	}
	set(t, n, admission.RoomSettings{MaxParticipants: 1, MaxPublications: 1}, true)
	if list := n.Summaries("room"); len(list) != 1 || list[0].Participants != 0 {
		t.Errorf("listed: %+v", list)
	}
	if _, err := n.SetRoom(t.Context(), "room", admission.RoomSettings{}, true); !errors.Is(err, directory.ErrExists) {
		t.Errorf("creating the room again: %v", err)
	}
	desk := bodyOf(1, 1)
	desk.Name = "desk"
	if refused := join("ada", bodyOf(1, 1), desk); refused == nil || refused.Code != signal.CodeLimit {
		t.Errorf("two publications: %v", refused)
	}
	if refused := join("ada", bodyOf(1, 1)); refused != nil {
		t.Fatal(refused)
	}
	if refused := join("bob"); refused == nil || !strings.Contains(refused.Message, "max_participants") {
		t.Errorf("a second participant: %v", refused)
	}
	set(t, n, admission.RoomSettings{MaxParticipants: 2}, false)
	if refused := join("bob", bodyOf(1, 1), desk); refused != nil {
		t.Errorf("a second participant after the change: %v", refused)
	}
	states, err := n.States(t.Context(), "room", false)
	if err != nil || len(states) != 1 || states[0].Settings == nil || states[0].Settings.MaxParticipants != 2 ||
		states[0].Settings.EmptyTimeoutMS == 0 || states[0].ID == "" {
		t.Errorf("described: %+v, %v", states, err)
	}
	for _, identity := range []string{"ada", "bob"} {
		if err := n.Kick(t.Context(), "room", identity, 0); err != nil {
			t.Error(err)
		}
	}
	if !exists(n) {
		t.Fatal("the room has ended with its last participant")
	}
	if refused := join("ada"); refused != nil {
		t.Errorf("a join to the empty room: %v", refused)
	}
	if err := n.CloseRoom(t.Context(), "room"); err != nil {
		t.Error(err)
	}
	eventually(t, func() bool { return !exists(n) }, "the end of the room")
	if err := n.CloseRoom(t.Context(), "room"); !errors.Is(err, ErrNotFound) {
		t.Errorf("closing the room again: %v", err)
	}
	set(t, n, admission.RoomSettings{}, true)
	if err := n.CloseRoom(t.Context(), "room"); err != nil || exists(n) {
		t.Errorf("closing an empty room: %v", err)
	}
	lines := d.lines(t)
	if lines[0] != "room_started room" || lines[len(lines)-1] != "room_ended room" ||
		slices.Index(lines, "room_ended room") == len(lines)-1 {
		t.Errorf("the events are %q, expected two rooms", lines)
	}
}

// TestDrainOfEmptyRooms: rooms without participants do not delay the end of the server.
func TestDrainOfEmptyRooms(t *testing.T) {
	n, d := newEventfulNode(t, nil)
	set(t, n, admission.RoomSettings{}, true)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	n.Drain(ctx, time.Minute)
	if ctx.Err() != nil {
		t.Error("the drain waited for an empty room")
	}
	if lines := d.lines(t); len(lines) != 2 {
		t.Errorf("the events are %q", lines)
	}
	if _, err := n.SetRoom(t.Context(), "attic", admission.RoomSettings{}, false); !errors.Is(err, directory.ErrRooms) {
		t.Errorf("a room during the drain: %v", err)
	}
}

// TestBitrateOfRoom: the bit rate of the room bounds the limits of present and later receivers, whatever they ask for.
func TestBitrateOfRoom(t *testing.T) {
	n, _ := newEventfulNode(t, nil)
	set(t, n, admission.RoomSettings{MaxBitrate: 5_000_000}, true)
	join := &signal.Join{Version: signal.Version, Receive: true}
	join.Max, join.Min = 8_000_000, 6_000_000
	session, _ := admitted(t, n, "ada", join)
	limits := func() (got signal.BitrateLimits) {
		inRoom(t, session, func(r *Room) { got = r.settings.Within(r.participants["ada"].limits) })
		return got
	}
	if got := limits(); got.Max != 5_000_000 || got.Min != 5_000_000 {
		t.Errorf("the limits are %+v", got)
	}
	handle(session, &signal.SetLimits{})
	if got := limits(); got.Max != 5_000_000 {
		t.Errorf("without own limits they are %+v", got)
	}
	handle(session, &signal.SetLimits{BitrateLimits: signal.BitrateLimits{Max: 1_000_000}})
	if got := limits(); got.Max != 1_000_000 {
		t.Errorf("with a lower limit they are %+v", got)
	}
	set(t, n, admission.RoomSettings{MaxBitrate: 500_000}, false)
	if got := limits(); got.Max != 500_000 {
		t.Errorf("after the change they are %+v", got)
	}
	set(t, n, admission.RoomSettings{}, false)
	if got := limits(); got.Max != 1_000_000 {
		t.Errorf("without the room's limit they are %+v", got)
	}
}

func TestCheckSettings(t *testing.T) {
	n, _ := newEventfulNode(t, func(c *Config) { c.Rooms = 1 })
	for _, s := range []admission.RoomSettings{
		{MaxParticipants: -1}, {MaxBitrate: signal.MaxBitrate + 1}, {EmptyTimeoutMS: 999},
	} {
		if _, err := n.SetRoom(t.Context(), "room", s, false); !errors.Is(err, admission.ErrSettings) {
			t.Errorf("%+v: error is %v", s, err)
		}
	}
	_, err := n.SetRoom(t.Context(), "a\nb", admission.RoomSettings{}, false)
	if !errors.Is(err, admission.ErrSettings) {
		t.Errorf("a name with a line break: %v", err)
	}
	set(t, n, admission.RoomSettings{EmptyTimeoutMS: time.Hour.Milliseconds()}, true)
	if _, err := n.SetRoom(t.Context(), "attic", admission.RoomSettings{}, false); !errors.Is(err, directory.ErrRooms) {
		t.Errorf("more rooms than rooms.rooms: %v", err)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			settings := admission.RoomSettings{MaxParticipants: i + 1}
			if _, err := n.SetRoom(t.Context(), "room", settings, false); err != nil &&
				!errors.Is(err, directory.ErrRooms) && !errors.Is(err, ErrNotFound) {
				t.Error(fmt.Errorf("setting while the room is closed: %w", err))
			}
			if err := n.CloseRoom(t.Context(), "room"); err != nil && !errors.Is(err, ErrNotFound) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
