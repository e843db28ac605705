package payload

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Errors of Push. They are wrapped with the frame and the reason, and counted in Stats.
var (
	// ErrTooLarge is a frame longer than Config.MaxFrameBytes.
	ErrTooLarge = errors.New("frame too large")
	// ErrContradiction is a packet that describes its frame otherwise than the frame's first packet did.
	ErrContradiction = errors.New("packets contradict each other")
	// ErrNoRoom is a packet of a frame older than all those that fill the limits on incomplete frames, or a chunk that a ChunkBudget has no room for.
	ErrNoRoom = errors.New("no room for another incomplete frame")
	// ErrStale is a packet of a frame too old to be known.
	ErrStale = errors.New("frame is too old")
)

// Config limits one Reassembler.
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
		// At 90 frames per second and the longer deadline of 250 ms 23 frames are under way.
		MaxFrames: 32,
		// Four of the largest frames: 8 MB frames at 30 frames per second and 250 ms deadline need 60 MB at worst.
		MaxBytes: 4 * MaxFrameBytes,
		Deadline: 150 * time.Millisecond,
	}
}

// Stats counts what happened since the Reassembler was made.
type Stats struct {
	// Packets is the number of packets pushed, of any fate.
	Packets uint64
	// Frames is the number of frames completed, Late how many of them after a newer one.
	Frames, Late uint64
	// GivenUp is the number of frames given up, Evicted how many of them before their deadline.
	GivenUp, Evicted uint64
	// Duplicates counts packets that had arrived before; Surplus those of frames finished before: parity not needed, repairs that came too late.
	Duplicates, Surplus uint64
	// Recovered is the number of source fragments that parity replaced.
	Recovered uint64
	// Malformed, Contradictions, TooLarge, NoRoom and Stale count packets refused.
	Malformed, Contradictions, TooLarge, NoRoom, Stale uint64
	// Restarts counts streams that began anew with an older frame number.
	Restarts uint64
}

// restartAfter is the number of packets in a row with a stale frame number that make a stream begin anew. A publisher that restarts loses the
// beginning of one frame by it; two stray retransmissions from before do no harm.
const restartAfter = 3

// Reassembler completes the frames of one stream. Frames complete by count, with packets in any order and repeated, and are handed out as they
// complete, whatever their order: a frame older than one handed out before is marked Late, for the receiver knows whether it still has time to
// show it. Every frame is handed out once.
type Reassembler struct {
	cfg      Config
	partials []*partial // incomplete frames in order of their first packets
	spare    []*partial
	held     int // chunks in partials
	window   window
	begun    bool
	stale    int   // packets in a row with a stale frame number
	newest   int64 // the newest frame handed out
	evicted  []GivenUp
	stats    Stats
	coder    coder
	frames   sync.Pool
}

// NewReassembler makes a Reassembler for one stream.
func NewReassembler(cfg Config) *Reassembler {
	r := &Reassembler{cfg: cfg}
	r.frames.New = func() any { return new(Frame) }
	return r
}

// Stats returns the counts so far.
func (r *Reassembler) Stats() Stats { return r.stats }

// SetDeadline changes the deadline, also of the frames under way.
func (r *Reassembler) SetDeadline(deadline time.Duration) { r.cfg.Deadline = deadline }

// Push takes a packet, as parsed by Descriptor.Unmarshal, and returns the frame that it completes, or nil. Data is copied. Packets that are of
// no use any more are counted and are no error.
func (r *Reassembler) Push(d *Descriptor, data []byte, now time.Time) (*Frame, error) {
	r.stats.Packets++
	if err := d.check(len(data)); err != nil {
		r.stats.Malformed++
		return nil, err
	}
	if int64(d.Length) > int64(r.cfg.MaxFrameBytes) {
		r.stats.TooLarge++
		return nil, fmt.Errorf("%w: frame %d has %d bytes, expected at most %d", ErrTooLarge, d.Frame, d.Length, r.cfg.MaxFrameBytes)
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
	if !r.admit(p, index) {
		r.stats.NoRoom++
		return nil, fmt.Errorf("%w: frame %d", ErrNoRoom, d.Frame)
	}
	before := p.held
	p.put(index, data, now)
	r.held += p.held - before
	if !p.complete() {
		return nil, nil
	}
	return r.finish(p), nil
}

// Expire gives up the frames whose deadline has passed and appends them to dst, together with those that were evicted since the last call.
func (r *Reassembler) Expire(now time.Time, dst []GivenUp) []GivenUp {
	dst = append(dst, r.evicted...)
	r.evicted = r.evicted[:0]
	// Partials stand in order of their first packets, hence of their deadlines.
	n := 0
	for n < len(r.partials) && !now.Before(r.partials[n].first.Add(r.cfg.Deadline)) {
		dst = append(dst, r.giveUp(r.partials[n], false))
		n++
	}
	r.partials = slices.Delete(r.partials, 0, n)
	return dst
}

// Next is when Expire should be called next, the zero time if no frame is under way.
func (r *Reassembler) Next() time.Time {
	if len(r.evicted) > 0 {
		return r.evicted[0].First
	}
	if len(r.partials) == 0 {
		return time.Time{}
	}
	return r.partials[0].first.Add(r.cfg.Deadline)
}

// Reset forgets all incomplete frames and every frame number, for a stream that begins to carry something else. Counts stay.
func (r *Reassembler) Reset() {
	for _, p := range r.partials {
		r.recycle(p)
	}
	r.partials, r.evicted = r.partials[:0], r.evicted[:0]
	r.begun, r.stale = false, 0
}
