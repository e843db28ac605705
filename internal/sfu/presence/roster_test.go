package presence

import (
	"slices"
	"testing"
)

// TestRosterReplacesAnIdentity adds a participant of another node and a local one with the same identity. The removal
// of the first does not remove the second.
func TestRosterReplacesAnIdentity(t *testing.T) {
	var r Roster
	mirror, local, other := &Presence{Identity: "ada"}, &Presence{Identity: "ada"}, &Presence{Identity: "bob"}
	r.Add(mirror)
	r.Add(local)
	r.Add(other)
	r.Remove(mirror)
	if r.Get("ada") != local || r.Len() != 2 {
		t.Errorf("the roster has %p of %d participants, expected %p of 2", r.Get("ada"), r.Len(), local)
	}
	r.Remove(local)
	if list := r.Others(nil); !slices.Equal(list, []*Presence{other}) {
		t.Errorf("the roster has %v, expected bob alone", list)
	}
}

// TestAssignNumber takes the number of the identity if it is free, otherwise one above those of lists of users.
func TestAssignNumber(t *testing.T) {
	var r Roster
	for _, step := range []struct {
		identity string
		want     uint32
	}{{"user7", 7}, {"7", firstFreeNumber}, {"ada", firstFreeNumber + 1}, {"bob0", firstFreeNumber + 2}} {
		p := &Presence{Identity: step.identity}
		r.Add(p)
		r.AssignNumber(p)
		if p.Number != step.want || r.ByNumber(step.want) != p {
			t.Errorf("%q has the number %d, expected %d", step.identity, p.Number, step.want)
		}
	}
}
