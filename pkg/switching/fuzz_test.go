package switching

import (
	"fmt"
	"testing"
	"time"
)

// FuzzSwitcher drives a Switcher with arbitrary facts, consistent or not.
func FuzzSwitcher(f *testing.F) {
	f.Add([]byte{0, 1, 0, 8, 1, 0, 0, 3, 8, 1, 1, 1, 3, 0, 2, 8, 2, 0, 2, 3})
	f.Add([]byte{0, 4, 0, 9, 4, 1, 9, 4, 0, 1, 3, 0, 9, 5, 255, 255})
	f.Add([]byte{0, 1, 1, 8, 1, 250, 0, 3, 8, 1, 251, 255, 3, 2, 8, 1, 252, 1, 3, 3, 0})
	f.Add(
		[]byte{
			0,
			1,
			0,
			8,
			1,
			8,
			1,
			0,
			50,
			20,
			0,
			4,
			1,
			0,
			0,
			50,
			20,
			0,
			8,
			1,
			8,
			0,
			8,
			50,
			20,
			8,
			4,
			1,
			0,
			8,
			50,
			20,
			0,
			8,
			1,
			8,
			0,
			8,
			50,
			20,
			0,
		},
	)
	f.Add(
		[]byte{
			3,
			0,
			50,
			0,
			1,
			8,
			1,
			0,
			3,
			0,
			50,
			20,
			0,
			8,
			1,
			8,
			0,
			8,
			50,
			20,
			0,
			8,
			1,
			24,
			1,
			0,
			50,
			20,
			30,
			1,
			0,
			8,
			1,
			8,
			0,
			8,
			50,
			20,
			0,
		},
	)
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := drive(t, data); err != nil {
			t.Fatal(err)
		}
	})
}

// tape reads numbers from fuzz input.
type tape []byte

func (b *tape) byte() byte {
	if len(*b) == 0 {
		return 0
	}
	v := (*b)[0]
	*b = (*b)[1:]
	return v
}

// step returns a signed distance: small for most bytes, up to 2^17 for some.
func (b *tape) step() int64 {
	v := int64(int8(b.byte()))
	if v > 100 || v < -100 {
		return v * int64(b.byte()) * 4
	}
	return v / 8
}

func drive(t *testing.T, data []byte) error {
	in := tape(data)
	first := int64(65_000)
	s := New(Config{FirstSequence: uint16(first), FirstTimestamp: 1<<32 - 5000})
	l := newLedger(t, s, first)
	now := dawn
	var sequence [8]int64
	for len(in) > 0 {
		op := in.byte()
		now = now.Add(time.Duration(op>>4) * 5 * time.Millisecond)
		track := TrackID(in.byte() % 8)
		src := Source{Track: track, Group: uint64(track / 4), NeedsKey: track == 7}
		switch op % 16 {
		case 0:
			s.Select(src, now)
			continue
		case 1:
			s.Overrun(now)
			l.released()
			continue
		case 2:
			s.Skip(now)
			continue
		case 3:
			s.SetParity(float64(in.byte()) / 200)
			continue
		}
		if track == 0 {
			continue
		}
		sequence[track] += in.step()
		flags := in.byte()
		p := Packet{
			Track: track, Sequence: sequence[track], Timestamp: uint32(sequence[track] * 3000), Framed: track < 6,
			Opens: flags&1 != 0, Key: flags&2 != 0, Marker: flags&4 != 0, Last: flags&8 != 0,
		}
		if p.Framed {
			p.FrameStart = p.Sequence - in.step()
			p.FramePackets = int(in.step())
			p.SourcePackets = int(in.step())
			p.Frame = sequence[track]/3 + in.step()
			p.Marker = false
		} else {
			p.Last = false
		}
		if op%16 == 4 {
			if s.End(&p, now) && !s.Ended(&p) {
				return fmt.Errorf("frame %d of track %d was ended, and is not among those", p.Frame, p.Track)
			}
			l.released()
			continue
		}
		ended := p.Framed && s.Ended(&p)
		v := s.Packet(&p, now)
		if ended && v.Action == Forward {
			return fmt.Errorf("packet %d of frame %d was sent, which was ended", p.Sequence, p.Frame)
		}
		if err := check(s, l, &p, src, v); err != nil {
			return err
		}
	}
	return nil
}

// check compares one verdict with the invariants that hold for any input.
func check(s *Switcher, l *ledger, p *Packet, src Source, v Verdict) error {
	highest := highestOf(l.sent)
	for i := range s.history.len() - 1 {
		if r, before := s.history.back(i), s.history.back(i+1); r.first+r.offset != before.last+before.offset+1 {
			return fmt.Errorf("runs %+v and %+v do not meet", before, r)
		}
	}
	l.released() // a frame that does not fit also releases numbers
	if v.Action == Forward && len(l.sent) > 0 {
		if ahead := s.sent.newest - highest; ahead >= maxAhead {
			return fmt.Errorf("number %d is %d above the highest before", s.sent.newest, ahead)
		}
	}
	for l.checked < s.next && s.next-l.checked > maxAhead {
		l.checked++ // a 16-bit number cannot express it yet
	}
	if v.Action == Forward {
		number := s.sent.newest + int64(int16(v.Sequence-uint16(s.sent.newest)))
		if _, twice := l.sent[number]; twice {
			return fmt.Errorf("number %d was sent twice", number)
		}
		if track, sequence, ok := s.Resolve(v.Sequence); ok && (track != p.Track || sequence != p.Sequence) {
			return fmt.Errorf(
				"Resolve(%d) = %d, %d after sending %d, %d",
				v.Sequence,
				track,
				sequence,
				p.Track,
				p.Sequence,
			)
		}
		l.sent[number] = v
		key := frameKey{src.Group, p.Frame}
		if before, begun := l.feeder[key]; p.Framed && begun && before != p.Track && s.history.count <= runLimit {
			return fmt.Errorf(
				"frame %d of group %d was sent from tracks %d and %d",
				p.Frame,
				src.Group,
				before,
				p.Track,
			)
		}
		if p.Framed {
			l.feeder[key] = p.Track
		}
	}
	return nil
}

func highestOf(sent map[int64]Verdict) int64 {
	highest := int64(-1)
	for n := range sent {
		highest = max(highest, n)
	}
	return highest
}
