package payload

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Errors of Push. The wrapping error contains the frame number and the reason; Stats counts each
// error.
var (
	// ErrTooLarge reports a frame longer than Config.MaxFrameBytes.
	ErrTooLarge = errors.New("frame too large")
	// ErrContradiction reports a packet whose description of the frame differs from that of the
	// frame's first packet.
	ErrContradiction = errors.New("packets contradict each other")
	// ErrNoRoom reports a packet of a frame older than all incomplete frames when the limits on
	// incomplete frames are reached, or a chunk when a ChunkBudget has no room.
	ErrNoRoom = errors.New("no room for another incomplete frame")
	// ErrStale reports a packet of a frame that is older than the window of known frames.
	ErrStale = errors.New("frame is too old")
)

// Config contains the limits of one Reassembler.
type Config struct {
	MaxFrameBytes int           `yaml:"max_frame_bytes" help:"longest frame accepted, in bytes"`
	MaxFrames     int           `yaml:"max_frames" help:"incomplete frames held per stream"`
	MaxBytes      int           `yaml:"max_bytes" help:"bytes held per stream for incomplete frames"`
	Deadline      time.Duration `yaml:"deadline" help:"time from a frame's first packet until it is given up"`
}

// DefaultConfig returns the default limits.
func DefaultConfig() Config {
	return Config{
		MaxFrameBytes: MaxFrameBytes,
		// At 90 frames per second and the longer deadline of 250 ms, 23 frames are incomplete at
		// the same time.
		MaxFrames: 32,
		// Four of the largest frames. 8 MB frames at 30 frames per second with a 250 ms deadline
		// need 60 MB at worst.
		MaxBytes: 4 * MaxFrameBytes,
		Deadline: 150 * time.Millisecond,
	}
}

// Stats counts events since the creation of the Reassembler.
type Stats struct {
	// Packets is the number of all packets pushed, accepted or not.
	Packets uint64
	// Frames is the number of completed frames. Late is the number of frames completed after a
	// newer one.
	Frames, Late uint64
	// GivenUp is the number of frames given up. Evicted is the number of frames given up before
	// their deadline.
	GivenUp, Evicted uint64
	// Duplicates counts packets that had arrived before. Surplus counts packets of frames already
	// finished, for example unneeded parity and late retransmissions.
	Duplicates, Surplus uint64
	// Recovered is the number of source fragments recovered from parity.
	Recovered uint64
	// Malformed, Contradictions, TooLarge, NoRoom and Stale count rejected packets.
	Malformed, Contradictions, TooLarge, NoRoom, Stale uint64
	// Restarts counts restarts of the stream with an older frame number.
	Restarts uint64
}

// restartAfter is the number of consecutive packets with a stale frame number after which the
// stream restarts. A publisher that restarts loses the start of one frame; two stray
// retransmissions from before cause no restart.
const restartAfter = 3

// Reassembler assembles the frames of one stream. A frame is complete when enough distinct packets
// have arrived, in any order, repeated or not. Frames are returned in the order of completion. A
// frame older than one returned before is marked Late, because only the receiver knows whether the
// frame can still be shown. Every frame is returned once.
type Reassembler struct {
	cfg      Config
	partials []*partial // incomplete frames, in the order of their first packets
	spare    []*partial
	held     int // bytes in partials
	window   window
	begun    bool
	stale    int   // consecutive packets with a stale frame number
	newest   int64 // newest frame returned
	evicted  []GivenUp
	stats    Stats
	coder    coder
	frames   sync.Pool
}

// NewReassembler returns a Reassembler for one stream.
func NewReassembler(cfg Config) *Reassembler {
	r := &Reassembler{cfg: cfg}
	r.frames.New = func() any { return new(Frame) }
	return r
}

// Stats returns the counts so far.
func (r *Reassembler) Stats() Stats { return r.stats }

// SetDeadline changes the deadline, including that of incomplete frames.
func (r *Reassembler) SetDeadline(deadline time.Duration) { r.cfg.Deadline = deadline }

// Push adds a packet, as parsed by Descriptor.Unmarshal, and returns the frame completed by the
// packet, or nil. Push copies data. Packets that are no longer needed are counted and cause no
// error.
func (r *Reassembler) Push(d *Descriptor, data []byte, now time.Time) (*Frame, error) {
	return r.push(d, data, nil, now)
}

// PushShared is Push without a copy: the Reassembler and the frame refer to data, which belongs to s. Data is nil in
// frames that are returned, see Frame.AppendParts.
func (r *Reassembler) PushShared(d *Descriptor, data []byte, s Shared, now time.Time) (*Frame, error) {
	return r.push(d, data, s, now)
}

func (r *Reassembler) push(d *Descriptor, data []byte, s Shared, now time.Time) (*Frame, error) {
	r.stats.Packets++
	if err := d.check(len(data)); err != nil {
		r.stats.Malformed++
		return nil, err
	}
	if int64(d.Length) > int64(r.cfg.MaxFrameBytes) {
		r.stats.TooLarge++
		return nil, fmt.Errorf(
			"%w: frame %d has %d bytes, expected at most %d",
			ErrTooLarge,
			d.Frame,
			d.Length,
			r.cfg.MaxFrameBytes,
		)
	}
	number, err := r.place(d.Frame)
	if err != nil {
		return nil, err
	}
	if r.window.done(number) {
		r.stats.Surplus++
		return nil, nil
	}
	p, err := r.find(d, number, now)
	if err != nil {
		return nil, err
	}
	index := int(d.Index)
	if p.has(index) {
		r.stats.Duplicates++
		return nil, nil
	}
	if !r.admit(p, p.cost(index, s)) {
		r.stats.NoRoom++
		return nil, fmt.Errorf("%w: frame %d", ErrNoRoom, d.Frame)
	}
	before := p.held
	p.put(index, data, s, now)
	r.held += p.held - before
	if !p.complete() {
		return nil, nil
	}
	return r.finish(p), nil
}

// Expire gives up the frames whose deadline has passed and appends them to dst, together with the
// frames evicted since the last call.
func (r *Reassembler) Expire(now time.Time, dst []GivenUp) []GivenUp {
	dst = append(dst, r.evicted...)
	r.evicted = r.evicted[:0]
	// The partial frames are in the order of their first packets, and therefore of their deadlines.
	n := 0
	for n < len(r.partials) && !now.Before(r.partials[n].first.Add(r.cfg.Deadline)) {
		dst = append(dst, r.giveUp(r.partials[n], false))
		n++
	}
	r.partials = slices.Delete(r.partials, 0, n)
	return dst
}

// Next returns the time of the next necessary call of Expire, or the zero time if there is no
// incomplete frame.
func (r *Reassembler) Next() time.Time {
	if len(r.evicted) > 0 {
		return r.evicted[0].First
	}
	if len(r.partials) == 0 {
		return time.Time{}
	}
	return r.partials[0].first.Add(r.cfg.Deadline)
}

// Reset drops all incomplete frames and all frame numbers, for a stream that begins to carry
// different content. The counters stay.
func (r *Reassembler) Reset() {
	for _, p := range r.partials {
		r.recycle(p)
	}
	r.partials, r.evicted = r.partials[:0], r.evicted[:0]
	r.begun, r.stale = false, 0
}
