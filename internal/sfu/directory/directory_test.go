package directory

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/pkg/signal"
)

// played is a room without participants. It notes what the directory reports.
type played struct {
	name string
	log  *[]string
}

func (r *played) Name() string { return r.name }
func (r *played) Begin()       { *r.log = append(*r.log, "begin "+r.name) }
func (r *played) End()         { *r.log = append(*r.log, "end "+r.name) }

// house makes rooms and counts them.
type house struct{ log []string }

// Make implements Maker.
func (h *house) Make(name string, _ *admission.RoomSettings) *played { return &played{name, &h.log} }

// Run implements Maker.
func (h *house) Run(r *played, _ <-chan struct{}) { h.log = append(h.log, "run "+r.name) }

// Exited implements Maker.
func (h *house) Exited(r *played) { h.log = append(h.log, "exited "+r.name) }

// Rooms implements Metrics.
func (*house) Rooms(int) {}

// Participants implements Metrics.
func (*house) Participants(int) {}

func newTestDirectory() (*Directory[*played], *house) {
	h := &house{}
	return New[*played](Config{Rooms: 2, AutoCreate: true, Bearers: admission.Limits{Rooms: 2, Places: 2}}, h, h), h
}

// TestEmptyTimeout: a room of the API ends when it has been empty for its time, and not while it has members, even if
// its timer fires after it was stopped.
func TestEmptyTimeout(t *testing.T) {
	d, h := newTestDirectory()
	settings := admission.RoomSettings{EmptyTimeoutMS: time.Hour.Milliseconds()}
	room, created, err := d.Hold("room", settings, true)
	if err != nil || !created {
		t.Fatalf("created: %t, %v", created, err)
	}
	o := d.rooms["room"]
	first := o.vacancy
	// expire is the timer of a vacancy.
	expire := func(vacancy int, state string) {
		t.Helper()
		d.expire(o, vacancy)
		if _, exists := d.Room("room"); !exists {
			t.Fatal("the room has ended " + state)
		}
	}
	if _, refused := d.Enter("room", "ada"); refused != nil {
		t.Fatal(refused)
	}
	expire(first, "with a member")
	d.Leave(room, "ada")
	expire(first, "with its last member, before its empty time is over")
	if _, _, err := d.Hold("room", settings, true); !errors.Is(err, ErrExists) {
		t.Errorf("creating the room again: %v", err)
	}
	d.expire(o, o.vacancy)
	if want := []string{"run room", "begin room", "exited room", "end room"}; !slices.Equal(h.log, want) {
		t.Errorf("reported %q, expected %q", h.log, want)
	}
	if rooms, _, bearers := d.Counts(); rooms != 0 || bearers != 0 {
		t.Errorf("%d rooms and %d bearers are left", rooms, bearers)
	}
}

// TestDrain: joins are refused, empty rooms end at once, and the last member ends the last room.
func TestDrain(t *testing.T) {
	d, _ := newTestDirectory()
	if _, _, err := d.Hold("attic", admission.RoomSettings{EmptyTimeoutMS: 1000}, false); err != nil {
		t.Fatal(err)
	}
	room, refused := d.Enter("room", "ada")
	if refused != nil {
		t.Fatal(refused)
	}
	d.RefuseJoins()
	d.RefuseJoins()
	if _, refused := d.Enter("room", "bob"); refused == nil || refused.Code != signal.CodeDraining {
		t.Errorf("a join during the drain: %v", refused)
	}
	if _, _, err := d.Hold("cellar", admission.RoomSettings{}, false); !errors.Is(err, ErrRooms) {
		t.Errorf("a room during the drain: %v", err)
	}
	if left := d.Named(""); !slices.Equal(left, []*played{room}) {
		t.Errorf("%d rooms are left, expected the one with a member", len(left))
	}
	d.Leave(room, "ada")
	select {
	case <-d.Empty():
	default:
		t.Error("the directory does not report that it is empty")
	}
}
