package switching

// runLimit is the number of runs kept, a power of two. The package comment explains why this number
// suffices.
const runLimit = 64

// run is a range of output numbers for the packets of one track, with output = input + offset.
type run struct {
	track TrackID
	group uint64
	// first and last are the bounds of the input numbers of the run. All numbers between them are
	// reserved, whether the packets have arrived or not.
	first, last int64
	offset      int64
	// surplus is the number of packets of the newest frame after last that are not forwarded. If
	// surplus is not 0, last is the frame's last planned packet.
	surplus int64
	// timestamp is the constant added to input timestamps.
	timestamp uint32
	framed    bool
	// The run may carry frames above floor, up to frame, the newest frame that it has begun.
	floor, frame int64
	// ended is one above the newest ended frame of the run, or 0 if no frame was ended. Foreign
	// packets have frame 0.
	ended int64
}

// omits reports whether the packet is parity of the newest frame beyond the planned packets.
func (r *run) omits(p *Packet) bool {
	return p.Framed && p.Frame == r.frame && p.Sequence > r.last && p.Sequence <= r.last+r.surplus
}

// after returns the input number at which the track continues after the run if its next packets
// begin at first. Missing packets in between are reserved.
func (r *run) after(first int64) int64 {
	return max(r.last+1, min(r.last+1+r.surplus, first))
}

// marked reports whether the packet is sent with a marker.
func (r *run) marked(p *Packet) bool {
	if !p.Framed {
		return p.Marker
	}
	return p.Last || r.surplus > 0 && p.Sequence == r.last
}

// carries reports whether this run may send the packet's frame. No two runs of a Group share a
// frame.
func (r *run) carries(p *Packet) bool {
	return !r.framed || !p.Framed || p.Frame > r.floor && p.Frame <= r.frame
}

// history is a ring of the latest runs. The output numbers are contiguous: each run begins where the previous run ends.
type history struct {
	// runs is nil before the first run: most slots of a receiver are idle, and the ring has 5 kB.
	runs  *[runLimit]run
	count int // number of all runs ever added; the newest is at count-1
}

func (h *history) back(i int) *run { return &h.runs[(h.count-1-i)&(runLimit-1)] }

func (h *history) len() int { return min(h.count, runLimit) }

func (h *history) push(r run) *run {
	h.count++
	*h.back(0) = r
	return h.back(0)
}

// find returns the newest run that covers the packet of the track, or nil.
func (h *history) find(track TrackID, sequence int64) *run {
	for i := range h.len() {
		if r := h.back(i); r.track == track && sequence >= r.first && sequence <= r.last {
			return r
		}
	}
	return nil
}

// carrying returns the newest run with reserved numbers for the frame of a framed packet, or nil.
func (h *history) carrying(p *Packet) *run {
	first, last := p.extent()
	for i := range h.len() {
		if r := h.back(i); r.track == p.Track && r.framed && r.carries(p) && max(first, r.first) <= min(last, r.last) {
			return r
		}
	}
	return nil
}

// at returns the run that contains the output number, or nil if the number stands for no packet. If
// a track restarted its numbering and has used the same input number again, the old packet can no
// longer be identified, and at returns nil.
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

// newestFrame returns the newest frame of the Group that any run in the history has begun.
func (h *history) newestFrame(group uint64) (frame int64, ok bool) {
	for i := range h.len() {
		if r := h.back(i); r.framed && r.group == group && (!ok || r.frame > frame) {
			frame, ok = r.frame, true
		}
	}
	return frame, ok
}
