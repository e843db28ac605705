package payload

import (
	"fmt"
	"slices"
	"time"
)

// maxEvicted bounds the number of evicted frames kept for Expire. If the caller never calls Expire,
// the reports are lost, but Stats still counts the frames.
const maxEvicted = windowFrames

// place unwraps the frame number and advances the window.
func (r *Reassembler) place(frame uint32) (int64, error) {
	if !r.begun {
		r.begin(int64(frame))
		return int64(frame), nil
	}
	number := ExtendFrame(r.window.newest, frame)
	if r.window.stale(number) {
		if r.stale++; r.stale < restartAfter {
			r.stats.Stale++
			return 0, fmt.Errorf("%w: frame %d is %d behind the newest", ErrStale, frame, r.window.newest-number)
		}
		r.stats.Restarts++
		r.evict(len(r.partials))
		r.begin(number)
		return number, nil
	}
	r.stale = 0
	r.window.advance(number)
	return number, nil
}

func (r *Reassembler) begin(number int64) {
	r.begun, r.stale = true, 0
	r.newest = number - 1
	r.window.begin(number)
}

// find returns the partial frame of a packet and creates one if necessary.
func (r *Reassembler) find(d *Descriptor, number int64, now time.Time) (*partial, error) {
	// Nearly always the frame is the newest in the list.
	for i := len(r.partials) - 1; i >= 0; i-- {
		p := r.partials[i]
		if p.number != number {
			continue
		}
		if !p.facts.SameFrame(d) {
			r.stats.Contradictions++
			return nil, fmt.Errorf("%w: frame %d", ErrContradiction, d.Frame)
		}
		return p, nil
	}
	if len(r.partials) >= max(1, r.cfg.MaxFrames) {
		oldest := r.oldest()
		if r.partials[oldest].number > number {
			r.stats.NoRoom++
			return nil, fmt.Errorf("%w: frame %d", ErrNoRoom, d.Frame)
		}
		r.evictAt(oldest)
	}
	var p *partial
	if n := len(r.spare); n > 0 {
		p, r.spare = r.spare[n-1], r.spare[:n-1]
	} else {
		p = new(partial)
	}
	p.begin(d, number, now)
	r.partials = append(r.partials, p)
	return p, nil
}

// admit makes room for bytes by evicting older frames and reports whether there is room.
func (r *Reassembler) admit(p *partial, bytes int) bool {
	for bytes > 0 && r.held+bytes > r.cfg.MaxBytes {
		oldest := r.oldest()
		if r.partials[oldest].number >= p.number {
			if p.any == 0 {
				r.remove(slices.Index(r.partials, p))
			}
			return false
		}
		r.evictAt(oldest)
	}
	return true
}

// finish assembles a complete frame and returns it.
func (r *Reassembler) finish(p *partial) *Frame {
	f := r.frames.Get().(*Frame)
	f.home = &r.frames
	at := slices.Index(r.partials, p)
	var start []byte
	if p.transfer(f) {
		start = f.shares[0].data
	} else {
		p.assemble(f, &r.coder)
		f.Data = f.buffer[:p.facts.Length]
		start = f.Data
	}
	f.Length = int(p.facts.Length)
	f.Number, f.Extended, f.Quality, f.Prefixed = p.facts.Frame, p.number, p.facts.Quality, p.facts.Prefixed
	f.First, f.Begun, f.Last, f.Packets = p.first, p.begun, p.last, p.any
	if p.segment > 0 {
		// Parity replaces the fragments missing from the first segment.
		f.Begun = p.last
	}
	if f.Prefixed {
		if _, err := f.Prefix.Unmarshal(start); err != nil {
			panic("a prefixed frame shorter than its prefix passed the descriptor's check")
		}
		f.prefix = [PrefixSize]byte(start)
		f.Length -= PrefixSize
		if f.Data != nil {
			f.Data = f.Data[PrefixSize:]
		}
	}
	f.Late = p.number < r.newest
	r.newest = max(r.newest, p.number)
	r.stats.Frames++
	r.stats.Recovered += uint64(f.Recovered)
	if f.Late {
		r.stats.Late++
	}
	r.markFinished(p.number)
	r.remove(at)
	return f
}

// oldest returns the position of the incomplete frame with the lowest number.
func (r *Reassembler) oldest() int {
	oldest := 0
	for i, p := range r.partials {
		if p.number < r.partials[oldest].number {
			oldest = i
		}
	}
	return oldest
}

// evict gives up the first n incomplete frames before their deadlines.
func (r *Reassembler) evict(n int) {
	for range n {
		r.evictAt(0)
	}
}

// evictAt gives up the incomplete frame at position i and keeps the report for Expire.
func (r *Reassembler) evictAt(i int) {
	report := r.giveUp(r.partials[i], true)
	r.partials = slices.Delete(r.partials, i, i+1)
	if len(r.evicted) < maxEvicted {
		r.evicted = append(r.evicted, report)
	}
}

// giveUp counts an incomplete frame as given up and recycles its memory. The caller removes the
// frame from the list.
func (r *Reassembler) giveUp(p *partial, evicted bool) GivenUp {
	report := GivenUp{
		Number: p.facts.Frame, Extended: p.number, Quality: p.facts.Quality, First: p.first,
		Source: int(p.facts.Source), Missing: p.missing(), Evicted: evicted,
	}
	r.stats.GivenUp++
	if evicted {
		r.stats.Evicted++
	}
	r.markFinished(p.number)
	r.recycle(p)
	return report
}

// markFinished makes later packets of the frame count as surplus, unless the window has advanced
// past the frame.
func (r *Reassembler) markFinished(number int64) {
	if !r.window.stale(number) {
		r.window.finish(number)
	}
}

// remove removes the incomplete frame at position i from the list and recycles its memory.
func (r *Reassembler) remove(i int) {
	r.recycle(r.partials[i])
	r.partials = slices.Delete(r.partials, i, i+1)
}

func (r *Reassembler) recycle(p *partial) {
	r.held -= p.release()
	r.spare = append(r.spare, p)
}
