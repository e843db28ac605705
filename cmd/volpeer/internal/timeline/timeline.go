// Package timeline returns the records of a recording in the order of their times, and reads ahead for callers that
// prepare for a record.
package timeline

import (
	"bytes"
	"cmp"
	"container/heap"
	"errors"
	"io"
	"time"

	"github.com/volsfu/volsfu/pkg/recording"
)

const (
	// lookahead is the time by which records are read before they are due: participants of a replay join so much
	// earlier that they are connected when their first frame is due. Records in files are in order to within 50 ms.
	lookahead = 2 * time.Second
	// maxAhead bounds the bytes of the records that are read ahead: 10 s at 200 Mbit/s.
	maxAhead = 256 << 20
)

// Source reads records in the order of the file. *recording.Reader implements it.
type Source interface {
	Next() (recording.Record, error)
}

// Timeline returns the records of a recording in the order of their times. It is owned by one goroutine.
type Timeline struct {
	source Source
	// read is the latest time of a record that was read, bytes the size of the pending records.
	read    time.Time
	bytes   int
	ended   bool
	pending cues
	count   int
	// frames are the pending frames of each track, so that the frames of a track are played in the order of their
	// numbers.
	frames map[Track][]*cue
}

// Track names a track of a recording.
type Track struct {
	Publication   uint32
	Tile, Quality int
}

// cue is a record with the time at which it is due. index counts the records.
type cue struct {
	record recording.Record
	due    time.Time
	index  int
}

// New returns the timeline of a recording.
func New(s Source) *Timeline { return &Timeline{source: s, frames: make(map[Track][]*cue)} }

// Fill reads records until lookahead after the earliest pending record. ahead is called for each record in the order of
// the file.
func (s *Timeline) Fill(ahead func(recording.Record)) error {
	for !s.ended && s.bytes < maxAhead && (len(s.pending) == 0 || s.read.Before(s.pending[0].due.Add(lookahead))) {
		r, err := s.source.Next()
		if errors.Is(err, io.EOF) {
			s.ended = true
			return nil
		}
		if err != nil {
			return err
		}
		r = kept(r)
		s.add(r)
		ahead(r)
	}
	return nil
}

// kept returns a record that remains valid when the next one is read.
func kept(r recording.Record) recording.Record {
	switch r := r.(type) {
	case *recording.Frame:
		r.Data = bytes.Clone(r.Data)
	case *recording.Message:
		r.Text = bytes.Clone(r.Text)
	case *recording.Unit:
		for i := range r.Payloads {
			r.Payloads[i] = bytes.Clone(r.Payloads[i])
		}
	}
	return r
}

// sizeOf returns the bytes of data of a record.
func sizeOf(r recording.Record) int {
	const overhead = 256
	switch r := r.(type) {
	case *recording.Frame:
		return overhead + len(r.Data)
	case *recording.Message:
		return overhead + len(r.Text)
	case *recording.Unit:
		n := overhead
		for _, p := range r.Payloads {
			n += len(p)
		}
		return n
	default:
		return overhead
	}
}

// add adds a record. A frame that was completed after a later frame of its track is due before the later frame.
func (s *Timeline) add(r recording.Record) {
	s.count++
	c := &cue{record: r, due: r.When(), index: s.count}
	if c.due.After(s.read) {
		s.read = c.due
	}
	s.bytes += sizeOf(r)
	if f, ok := r.(*recording.Frame); ok {
		track := Track{f.Publication, f.Tile, int(f.Quality)}
		for _, later := range s.frames[track] {
			if int32(later.record.(*recording.Frame).Number-f.Number) > 0 && !later.due.After(c.due) {
				c.due = later.due.Add(-1)
			}
		}
		s.frames[track] = append(s.frames[track], c)
	}
	heap.Push(&s.pending, c)
}

// Next returns the earliest record and the time at which it is due. Next returns false if there is none.
func (s *Timeline) Next() (recording.Record, time.Time, bool) {
	if len(s.pending) == 0 {
		return nil, time.Time{}, false
	}
	c := heap.Pop(&s.pending).(*cue)
	s.bytes -= sizeOf(c.record)
	if f, ok := c.record.(*recording.Frame); ok {
		track := Track{f.Publication, f.Tile, int(f.Quality)}
		list := s.frames[track]
		for i := range list {
			if list[i] == c {
				s.frames[track] = append(list[:i], list[i+1:]...)
				break
			}
		}
	}
	return c.record, c.due, true
}

// cues implements heap.Interface by the time, then by the order in the file.
type cues []*cue

func (h cues) Len() int { return len(h) }

func (h cues) Less(i, j int) bool {
	a, b := h[i], h[j]
	return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.index, b.index)) < 0
}

func (h cues) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *cues) Push(x any) { *h = append(*h, x.(*cue)) }

func (h *cues) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return c
}
