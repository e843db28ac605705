package cluster

import (
	"maps"
	"slices"
	"time"
)

// changedFor is the time for which beats carry the number of a changed room: five beats, so that a receiver that misses
// four of them needs no digest.
const changedFor = time.Second

// maxRecent limits the changes that the journal keeps for beats. A room that changes often has several.
const maxRecent = 4 * maxChanged

// journal is this node's part of its rooms, with the numbers of changes.
type journal struct {
	sequence uint64
	rooms    map[string]*log
	// digest has the number of the latest delta of each room by key, and sum the sum over it.
	digest map[string]uint64
	sum    uint64
	recent []recentChange
	// dirty are the rooms with changes that have not been sent, in the order of their first change. deltas are deltas
	// of rooms that the node has left.
	dirty  []*log
	deltas []*Delta
}

// log is this node's part of one room.
type log struct {
	room, key string
	// sequence is the number of the latest delta, 0 before the first.
	sequence uint64
	content  content
	state    *RoomState
	pending  []Change
	dirty    bool
}

type recentChange struct {
	key string
	at  time.Time
}

func newJournal() journal {
	return journal{rooms: map[string]*log{}, digest: map[string]uint64{}}
}

// enter adds a room.
func (j *journal) enter(room, key string) {
	l := &log{room: room, key: key, content: content{}}
	j.rooms[room] = l
	j.touch(l)
}

func (j *journal) touch(l *log) {
	if !l.dirty {
		l.dirty = true
		j.dirty = append(j.dirty, l)
	}
}

// exit removes a room with its content. The changes of the room that have not been sent are dropped.
func (j *journal) exit(now time.Time, room string) {
	l, ok := j.rooms[room]
	if !ok {
		return
	}
	delete(j.rooms, room)
	j.dirty = slices.DeleteFunc(j.dirty, func(other *log) bool { return other == l })
	if l.sequence == 0 {
		return
	}
	j.sequence++
	j.deltas = append(j.deltas, &Delta{Room: room, Previous: l.sequence, Sequence: j.sequence, Gone: true})
	j.number(now, l.key, 0)
}

// number sets the number of a room in the digest, 0 to remove the room.
func (j *journal) number(now time.Time, key string, sequence uint64) {
	if present, ok := j.digest[key]; ok {
		j.sum -= entrySum(key, present)
	}
	if sequence == 0 {
		delete(j.digest, key)
	} else {
		j.digest[key] = sequence
		j.sum += entrySum(key, sequence)
	}
	j.recent = append(j.recent, recentChange{key, now})
	if len(j.recent) > maxRecent {
		j.recent = slices.Delete(j.recent, 0, len(j.recent)-maxRecent)
	}
}

// write applies a change to a room of the node.
func (j *journal) write(l *log, change Change) {
	if change.State != nil {
		l.state = change.State
	}
	l.content.apply(&change)
	l.pending = append(l.pending, change)
	j.touch(l)
}

// flush returns the deltas for the changes since the last call.
func (j *journal) flush(now time.Time) []*Delta {
	deltas := j.deltas
	for _, l := range j.dirty {
		for _, changes := range split(l.pending) {
			j.sequence++
			deltas = append(deltas,
				&Delta{Room: l.room, Previous: l.sequence, Sequence: j.sequence, Changes: changes})
			l.sequence = j.sequence
		}
		j.number(now, l.key, l.sequence)
		l.pending, l.dirty = nil, false
	}
	j.dirty, j.deltas = nil, nil
	return deltas
}

// changed returns the rooms that changed in the last second, for a beat. If there are too many, the rest is left to the
// receivers' requests for the digest.
func (j *journal) changed(now time.Time) map[string]uint64 {
	first := slices.IndexFunc(j.recent, func(c recentChange) bool { return now.Sub(c.at) < changedFor })
	if first < 0 {
		j.recent = nil
		return nil
	}
	j.recent = slices.Delete(j.recent, 0, first)
	rooms := map[string]uint64{}
	for _, c := range j.recent {
		if len(rooms) == maxChanged {
			break
		}
		rooms[c.key] = j.digest[c.key]
	}
	return rooms
}

// snapshot returns the parts of a snapshot of a room. All changes must have been flushed.
func (l *log) snapshot() []*Snapshot {
	changes := l.content.changes()
	if l.state != nil {
		changes = append([]Change{{State: l.state}}, changes...)
	}
	pieces := split(changes)
	parts := make([]*Snapshot, 0, len(pieces))
	for i, changes := range pieces {
		parts = append(parts,
			&Snapshot{Room: l.room, Sequence: l.sequence, Part: i, Parts: len(pieces), Changes: changes})
	}
	return parts
}

// whole returns the digest of all rooms.
func (j *journal) whole() *Digest { return &Digest{Sequence: j.sequence, Rooms: maps.Clone(j.digest)} }
