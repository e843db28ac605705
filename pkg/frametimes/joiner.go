package frametimes

import (
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Key names a tile frame in a room.
type Key struct {
	Track volumetric.TrackRef
	// Frame is the frame number as it travels; the last 2^32 frames are told apart.
	Frame uint32
}

// Joiner puts together what different hosts say of a frame: what each of them knows comes by itself, in any order. It is pure, stepped with an explicit now, and belongs
// to whoever steps it. What is not claimed, as no receiver has the frame, is forgotten.
type Joiner struct {
	patience time.Duration
	limit    int
	pending  map[Key]*pendingRecord
	// queue are the keys in the order in which they came, from begin on.
	queue []queuedKey
	begin int
	// dropped counts records that had to make room.
	dropped uint64
}

type pendingRecord struct {
	record Record
	// claimed says that a receiver has the frame.
	claimed bool
}

type queuedKey struct {
	key Key
	at  time.Time
}

// NewJoiner makes a joiner that waits for patience, from when a frame was first heard of, and keeps as many frames as limit at most.
func NewJoiner(patience time.Duration, limit int) *Joiner {
	return &Joiner{patience: patience, limit: max(limit, 1), pending: make(map[Key]*pendingRecord)}
}

// Add adds what one host says of a frame. What is known already stays.
func (j *Joiner) Add(k Key, part *Record, now time.Time) {
	p := j.find(k, now)
	p.record.Merge(part)
}

// Claim adds what the receiver says of a frame that it has: its number, extended, and its own stamps.
func (j *Joiner) Claim(k Key, part *Record, now time.Time) {
	p := j.find(k, now)
	p.claimed = true
	p.record.Track, p.record.Frame = part.Track, part.Frame
	p.record.Merge(part)
}

// Note adds stamps of a frame that is waiting; of others they come too late.
func (j *Joiner) Note(k Key, note func(*Record)) {
	if p := j.pending[k]; p != nil {
		note(&p.record)
	}
}

func (j *Joiner) find(k Key, now time.Time) *pendingRecord {
	p := j.pending[k]
	if p == nil {
		for len(j.pending) >= j.limit {
			j.dropOldest()
		}
		p = &pendingRecord{record: Record{Track: k.Track, Frame: int64(k.Frame)}}
		j.pending[k] = p
		j.queue = append(j.queue, queuedKey{k, now})
	}
	return p
}

// dropOldest makes room.
func (j *Joiner) dropOldest() {
	delete(j.pending, j.queue[j.begin].key)
	j.begin++
	j.dropped++
	j.compact()
}

// compact gives back the front of the queue once it is half of it.
func (j *Joiner) compact() {
	if j.begin > len(j.queue)/2 {
		n := copy(j.queue, j.queue[j.begin:])
		clear(j.queue[n:])
		j.queue, j.begin = j.queue[:n], 0
	}
}

// Take appends the records whose time is over, the oldest first.
func (j *Joiner) Take(now time.Time, dst []Record) []Record {
	for j.begin < len(j.queue) && now.Sub(j.queue[j.begin].at) >= j.patience {
		k := j.queue[j.begin].key
		if p := j.pending[k]; p.claimed {
			dst = append(dst, p.record)
		}
		delete(j.pending, k)
		j.begin++
	}
	j.compact()
	return dst
}

// Drain appends all records that wait, for the end.
func (j *Joiner) Drain(dst []Record) []Record {
	for _, q := range j.queue[j.begin:] {
		if p := j.pending[q.key]; p.claimed {
			dst = append(dst, p.record)
		}
	}
	clear(j.pending)
	j.queue, j.begin = nil, 0
	return dst
}

// Dropped is how many frames had to make room so far.
func (j *Joiner) Dropped() uint64 { return j.dropped }
