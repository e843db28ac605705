package frametimes

import (
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Key identifies a tile frame in a room.
type Key struct {
	Track volumetric.TrackRef
	// Frame is the 32-bit frame number as sent. Frame identifies a frame among the last 2^32.
	Frame uint32
}

// Joiner merges the partial records that different hosts have of a frame, in any order. A Joiner is
// pure: the caller passes the time and owns the Joiner. If no receiver claims a frame, its record
// is dropped.
type Joiner struct {
	patience time.Duration
	limit    int
	pending  map[Key]*pendingRecord
	// queue contains the keys in the order of their arrival, from begin on.
	queue []queuedKey
	begin int
	// dropped counts records dropped to make room.
	dropped uint64
}

type pendingRecord struct {
	record Record
	// claimed reports that a receiver has the frame.
	claimed bool
}

type queuedKey struct {
	key Key
	at  time.Time
}

// NewJoiner returns a Joiner that holds each record for patience after its first part, and at most
// limit records.
func NewJoiner(patience time.Duration, limit int) *Joiner {
	return &Joiner{patience: patience, limit: max(limit, 1), pending: make(map[Key]*pendingRecord)}
}

// Add merges the record that one host has of a frame. Known values are kept.
func (j *Joiner) Add(k Key, part *Record, now time.Time) {
	p := j.find(k, now)
	p.record.Merge(part)
}

// Claim merges the record of the receiver of a frame: the extended frame number and the receiver's
// stamps.
func (j *Joiner) Claim(k Key, part *Record, now time.Time) {
	p := j.find(k, now)
	p.claimed = true
	p.record.Track, p.record.Frame = part.Track, part.Frame
	p.record.Merge(part)
}

// Note calls note with the record of a frame that is still held. Note does nothing for other frames.
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

// dropOldest drops the oldest record to make room.
func (j *Joiner) dropOldest() {
	delete(j.pending, j.queue[j.begin].key)
	j.begin++
	j.dropped++
	j.compact()
}

// compact removes the unused front of the queue if it exceeds half of the queue.
func (j *Joiner) compact() {
	if j.begin > len(j.queue)/2 {
		n := copy(j.queue, j.queue[j.begin:])
		clear(j.queue[n:])
		j.queue, j.begin = j.queue[:n], 0
	}
}

// Take appends the records that were held for patience to dst, oldest first, and removes them.
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

// Drain appends all records to dst and removes them, for use at the end.
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

// Dropped returns the number of records dropped so far to make room.
func (j *Joiner) Dropped() uint64 { return j.dropped }
