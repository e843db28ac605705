package switching

// runLimit is the number of runs remembered, a power of two. The package comment says why it suffices.
const runLimit = 64

// run is a stretch of output numbers that stand for the packets of one track, with output = input + offset.
type run struct {
	track TrackID
	group uint64
	// first and last are the input numbers that the run covers. All of them are reserved, whether they have come or not.
	first, last int64
	offset      int64
	// surplus is how many packets after last the newest frame has that are not forwarded; last is its last packet planned then.
	surplus int64
	// timestamp is the constant to add to the input's timestamps.
	timestamp uint32
	framed    bool
	// The run may carry frames above floor, up to the newest that it has begun.
	floor, frame int64
	// ended is one above the newest frame of the run that was ended, 0 while there is none. Foreign packets are of frame 0.
	ended int64
}

// omits says whether the packet is parity of the newest frame beyond what was planned.
func (r *run) omits(p *Packet) bool {
	return p.Framed && p.Frame == r.frame && p.Sequence > r.last && p.Sequence <= r.last+r.surplus
}

// after is the input number at which the track goes on behind the run, if its next packets begin at first. Packets that are missing in between are owed.
func (r *run) after(first int64) int64 {
	return max(r.last+1, min(r.last+1+r.surplus, first))
}

// marked says whether the packet goes out with a marker.
func (r *run) marked(p *Packet) bool {
	if !p.Framed {
		return p.Marker
	}
	return p.Last || r.surplus > 0 && p.Sequence == r.last
}

// carries says whether the packet's frame is one that this run may send, so that no two runs of a Group ever share a frame.
func (r *run) carries(p *Packet) bool {
	return !r.framed || !p.Framed || p.Frame > r.floor && p.Frame <= r.frame
}

// history is a ring of the latest runs. Their output numbers are contiguous: each begins where the one before ends.
type history struct {
	runs  [runLimit]run
	count int // of all runs ever; the newest is at count-1
}

func (h *history) back(i int) *run { return &h.runs[(h.count-1-i)&(runLimit-1)] }

func (h *history) len() int { return min(h.count, runLimit) }

func (h *history) push(r run) *run {
	h.count++
	*h.back(0) = r
	return h.back(0)
}

// find returns the newest run that covers the packet of the track.
func (h *history) find(track TrackID, sequence int64) *run {
	for i := range h.len() {
		if r := h.back(i); r.track == track && sequence >= r.first && sequence <= r.last {
			return r
		}
	}
	return nil
}

// carrying returns the newest run that has reserved numbers for the frame of a framed packet, nil where there is none.
func (h *history) carrying(p *Packet) *run {
	first, last := p.extent()
	for i := range h.len() {
		if r := h.back(i); r.track == p.Track && r.framed && r.carries(p) && max(first, r.first) <= min(last, r.last) {
			return r
		}
	}
	return nil
}

// at returns the run that the output number belongs to, nil where it stands for nothing. Where a track restarted its numbering, so that its
// input number has been used again since, the old packet cannot be named any more.
func (h *history) at(number int64) *run {
	for i := range h.len() {
		r := h.back(i)
		if number < r.first+r.offset {
			continue
		}
		if h.find(r.track, number-r.offset) != r {
			return nil
		}
		return r
	}
	return nil
}

// newestFrame is the newest frame of the Group that any remembered run has begun.
func (h *history) newestFrame(group uint64) (frame int64, ok bool) {
	for i := range h.len() {
		if r := h.back(i); r.framed && r.group == group && (!ok || r.frame > frame) {
			frame, ok = r.frame, true
		}
	}
	return frame, ok
}
