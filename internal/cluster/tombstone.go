package cluster

import (
	"slices"
	"time"
)

// heldTombstones is the maximum number of tombstones of each node.
const heldTombstones = 1024

// tombstones are the tombstones that a node knows.
type tombstones struct {
	held []heldTombstone
	// next is the index from which the next beat continues.
	next int
}

// heldTombstone is a tombstone with the node that sent it.
type heldTombstone struct {
	Tombstone
	// from is empty for a tombstone that this node repeats in its beats: its own, and those of nodes that are dead.
	from    string
	expires time.Time
}

// same reports whether t and other replace each other. Bans of two tokens do not, because two nodes set their times.
func (t *Tombstone) same(other *Tombstone) bool {
	return t.Kind == other.Kind && t.Room == other.Room && t.Identity == other.Identity &&
		t.Session == other.Session && t.TokenID == other.TokenID
}

// covers reports whether the tombstone removes a participant of its room. Unknown kinds cover nothing.
func (t *Tombstone) covers(p *Participant) bool {
	switch t.Kind {
	case TombstoneKick:
		return p.Identity == t.Identity && (p.Session == t.Session || !p.Joined.After(t.At))
	case TombstoneRoom:
		return !p.Joined.After(t.At)
	case TombstoneSession:
		return p.Identity == t.Identity && p.Session == t.Session && p.Epoch <= t.Epoch
	default:
		return false
	}
}

// add adds a tombstone and reports whether it is new or later than the one it replaces. If there are heldTombstones of
// the node, its first is dropped.
func (s *tombstones) add(t heldTombstone) bool {
	first, count := -1, 0
	for i := range s.held {
		present := &s.held[i]
		if present.same(&t.Tombstone) {
			if !t.At.After(present.At) && t.Epoch <= present.Epoch {
				return false
			}
			s.held[i] = t
			return true
		}
		if present.from == t.from {
			if count++; first < 0 {
				first = i
			}
		}
	}
	if count >= heldTombstones {
		s.held = slices.Delete(s.held, first, first+1)
	}
	s.held = append(s.held, t)
	return true
}

// adopt repeats the tombstones of a node that is dead: others may not have received them.
func (s *tombstones) adopt(node string) {
	for i := range s.held {
		if s.held[i].from == node {
			s.held[i].from = ""
		}
	}
}

// expire removes expired tombstones.
func (s *tombstones) expire(now time.Time) {
	s.held = slices.DeleteFunc(s.held, func(t heldTombstone) bool { return !now.Before(t.expires) })
}

// forBeat returns the tombstones for the next beat.
func (s *tombstones) forBeat() []Tombstone {
	var taken []Tombstone
	for range s.held {
		if s.next %= len(s.held); s.held[s.next].from == "" {
			taken = append(taken, s.held[s.next].Tombstone)
		}
		if s.next++; len(taken) == maxTombstones {
			break
		}
	}
	return taken
}

// covering returns the first tombstone that covers a participant of a room, nil if there is none.
func (s *tombstones) covering(room string, p *Participant) *Tombstone {
	for i := range s.held {
		if t := &s.held[i].Tombstone; t.Room == room && t.covers(p) {
			return t
		}
	}
	return nil
}
