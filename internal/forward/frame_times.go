package forward

import (
	"encoding/binary"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/pkg/payload"
)

const (
	// timesInterval is how often the times of frames are handed over: twice per second.
	timesInterval = 500 * time.Millisecond
	// keptTimes bounds the frames of one receiver whose times wait to be handed over: 60 tiles at 60 frames per second, of half a second, in 200 kB.
	keptTimes = 2048
	// timesAge is after how long nothing is added to the times of a frame whose last packet has left, so that the last one before a pause is told, too. unendedAge is the same for
	// others: a frame that is spread over its interval takes that long at one per second. Who puts the times of all hosts together waits for two.
	timesAge   = 100 * time.Millisecond
	unendedAge = time.Second
	// maxSentStamps bounds the kernel's stamps that wait for their frames.
	maxSentStamps = 256
	// stampInterval is the least time between two packets of one receiver whose stamps the kernel is asked for when sending, and stampShare that between two of any receivers, as
	// the mean: each costs some 3 µs, in a system call that reads it.
	stampInterval = 20 * time.Millisecond
	stampShare    = 10 * time.Millisecond
)

// FrameTimes are the stamps of one frame of payload v1 on its way through the server to one slot, in nanoseconds since 1970; 0 where they were not taken.
type FrameTimes struct {
	Slot  *Slot
	Track *Track
	// Frame is the frame number, and Bytes the frame's length.
	Frame uint32
	Bytes uint32
	// FirstIn and LastIn are when the first and the last of its packets that went to the slot were read, FirstOut and LastOut when the first and the last were about to be
	// sealed and handed to the socket. Kernel and Hardware are the first packet's, where the system tells.
	FirstInHardware, FirstInKernel, FirstIn, LastIn     int64
	FirstOut, FirstOutKernel, FirstOutHardware, LastOut int64
}

// frameTrace is what a writer notes of a frame on one slot, in one line of the cache.
//
// Only packets at the edges of a frame are noted (packet.edge): the others cost nothing. Times of leaving are those of the writer's clock as it was last read, not much more than a run of
// packets before. Reading it once more for every run would double what tracing takes.
type frameTrace struct {
	slot  *Slot
	track *Track
	frame int64
	// firstIn is in nanoseconds since the engine's start. kernelIn and hardwareIn are how long before that, 0 where not known, the others how long after.
	firstIn                   int64
	kernelIn, hardwareIn      int32
	lastIn, firstOut, lastOut int32
	bytes                     uint32
	// sequence is the number of the first packet on the slot; ended says that the last one has left.
	sequence uint16
	ended    bool
}

// told tells whether nothing is added to the frame any more at a time of the engine's.
func (f *frameTrace) told(at time.Duration) bool {
	age := unendedAge
	if f.ended {
		age = timesAge
	}
	return at-time.Duration(f.firstIn+int64(f.lastOut)) > age
}

// span is a time of nanoseconds within two seconds, which no frame stays.
func span(ns int64) int32 { return int32(min(max(ns, 0), math.MaxInt32)) }

// before is how long before another a stamp was taken, 0 where it was not.
func before(stamp, other int64) int32 {
	if stamp == 0 {
		return 0
	}
	return max(1, span(other-stamp))
}

// stampingPeer is a peer that can ask the kernel when a packet leaves.
type stampingPeer interface {
	// StampNext asks for the time at which the kernel sends the packet that is queued next.
	StampNext()
}

// tracer notes the times of a receiver's frames. All but wanted and what the mutex guards is the writer's.
type tracer struct {
	wanted atomic.Bool
	notify chan struct{}
	// stamping is nil where the peer cannot; stampDue is when the next packet's stamp may be asked for.
	stamping stampingPeer
	stampDue time.Duration

	// done are the frames that nothing is added to any more, room is the list handed over before.
	done   []frameTrace
	handed time.Duration

	mu    sync.Mutex
	ready []frameTrace
	sent  []sentStamp
}

// sentStamp is what the kernel tells of a packet that was sent.
type sentStamp struct {
	ssrc             uint32
	sequence         uint16
	kernel, hardware int64
}

// TraceFrames says whether the times of the receiver's frames are wanted.
func (r *Receiver) TraceFrames(wanted bool) { r.tracer.wanted.Store(wanted) }

// FrameTimesReady is signalled when times of frames wait to be taken.
func (r *Receiver) FrameTimesReady() <-chan struct{} { return r.tracer.notify }

// TakeFrameTimes appends the times of the frames since the last call to buf.
func (r *Receiver) TakeFrameTimes(buf []FrameTimes) []FrameTimes {
	t, engine := &r.tracer, r.writer.engine
	now := engine.clock()
	// Wall time may have been set since the engine's start.
	begin := now.UnixNano() - int64(now.Sub(engine.started))
	at := func(since int64) int64 {
		if since == 0 {
			return 0
		}
		return begin + since
	}
	earlier := func(first int64, by int32) int64 {
		if by == 0 {
			return 0
		}
		return first - int64(by)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.ready {
		f := &t.ready[i]
		first := begin + f.firstIn
		times := FrameTimes{
			Slot: f.slot, Track: f.track, Frame: uint32(f.frame), Bytes: f.bytes,
			FirstInHardware: earlier(first, f.hardwareIn), FirstInKernel: earlier(first, f.kernelIn), FirstIn: first, LastIn: first + int64(f.lastIn),
			FirstOut: first + int64(f.firstOut), LastOut: first + int64(f.lastOut),
		}
		if len(t.sent) > 0 {
			if stamp, ok := t.stampOf(f); ok {
				times.FirstOutKernel, times.FirstOutHardware = at(stamp.kernel), at(stamp.hardware)
			}
		}
		buf = append(buf, times)
	}
	clear(t.ready)
	t.ready = t.ready[:0]
	return buf
}

// stampOf finds what the kernel said of a frame's first packet. The caller holds the mutex.
func (t *tracer) stampOf(f *frameTrace) (sentStamp, bool) {
	ssrc := f.slot.outlet.SSRC()
	for i, s := range t.sent {
		if s.ssrc == ssrc && s.sequence == f.sequence {
			t.sent = slices.Delete(t.sent, i, i+1)
			return s, true
		}
	}
	return sentStamp{}, false
}

// PacketSent takes the kernel's stamps of a packet that it was asked for; hardware is the zero time where the network card tells nothing.
func (r *Receiver) PacketSent(ssrc uint32, sequence uint16, kernel, hardware time.Time) {
	t, engine := &r.tracer, r.writer.engine
	now := engine.clock()
	s := sentStamp{ssrc, sequence, engine.stamp(kernel, now), engine.stamp(hardware, now)}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.sent {
		if known := &t.sent[i]; known.ssrc == ssrc && known.sequence == sequence {
			known.kernel, known.hardware = max(known.kernel, s.kernel), max(known.hardware, s.hardware)
			return
		}
	}
	if len(t.sent) == maxSentStamps {
		t.sent = slices.Delete(t.sent, 0, maxSentStamps/2)
	}
	t.sent = append(t.sent, s)
}

// stamp returns a wall time as nanoseconds since the engine's start, and 0 for the zero time. now is a recent reading
// of the engine's clock: the wall clock may have been set since the start.
func (e *Engine) stamp(t, now time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return e.since(now) - int64(now.Round(0).Sub(t.Round(0)))
}

// traces tells whether the receiver's frames are traced.
func (w *writer) traces(r *Receiver) bool { return w.engine.cfg.FrameTimes || r.tracer.wanted.Load() }

// expectFrame is called before a packet is queued: it has the kernel tell when it sends the first packet of a frame, now and then.
func (w *writer) expectFrame(s *Slot, p *packetlog.Packet) {
	t := &s.receiver.tracer
	if t.stamping == nil || w.at < t.stampDue || !p.Facts.Opens || !t.wanted.Load() {
		return
	}
	t.stampDue = w.at + max(stampInterval, time.Duration(len(w.receivers))*stampShare)
	t.stamping.StampNext()
}

// trace notes a packet at the edge of a frame that was queued on a slot; the marker is on the last one.
func (w *writer) trace(s *Slot, track *Track, p *packetlog.Packet, sequence uint16, marker bool) {
	f := &s.traced[s.tracing]
	if f.frame != p.Facts.Frame || f.track != track {
		if f = w.traceAnother(s, track, p, sequence); f == nil {
			return
		}
	}
	f.lastIn, f.lastOut = max(f.lastIn, span(p.Order-f.firstIn)), span(int64(w.at)-f.firstIn)
	f.ended = f.ended || marker
}

// traceAnother finds the frame before the present one on a slot, or begins the next in its place. It gives nil for packets of frames before those, and of
// frames whose times were told.
func (w *writer) traceAnother(s *Slot, track *Track, p *packetlog.Packet, sequence uint16) *frameTrace {
	other := &s.traced[1-s.tracing]
	if other.frame == p.Facts.Frame && other.track == track {
		return other
	}
	if present := &s.traced[s.tracing]; present.track == track && p.Facts.Frame < present.frame || s.told.track == track && p.Facts.Frame <= s.told.frame {
		return nil
	}
	w.traced(s.receiver, other)
	*other = frameTrace{
		slot: s, track: track, frame: p.Facts.Frame, bytes: frameBytes(p.Payload), sequence: sequence,
		firstIn: p.Order, kernelIn: before(p.Kernel, p.Order), hardwareIn: before(p.Hardware, p.Order),
		firstOut: span(int64(w.at) - p.Order), lastOut: span(int64(w.at) - p.Order),
	}
	s.tracing = 1 - s.tracing
	return other
}

// frameBytes is the frame's length, from the descriptor's last four bytes.
func frameBytes(body []byte) uint32 {
	if len(body) < payload.DescriptorSize {
		return 0
	}
	return binary.BigEndian.Uint32(body[payload.DescriptorSize-4:])
}

// traced counts a frame that nothing is added to any more, and keeps its times for who wants them.
func (w *writer) traced(r *Receiver, f *frameTrace) {
	if f.track == nil {
		return
	}
	if s := f.slot; s.told.track != f.track || s.told.frame < f.frame {
		s.told.track, s.told.frame = f.track, f.frame
	}
	w.stats.frameHold.observe(time.Duration(f.firstOut), 1)
	w.stats.frameDistribution.observe(time.Duration(f.lastOut), 1)
	w.stats.frameReception.observe(time.Duration(f.lastIn), 1)
	t := &r.tracer
	if t.wanted.Load() {
		if t.done == nil {
			t.done = make([]frameTrace, 0, keptTimes)
		}
		if len(t.done) < keptTimes {
			t.done = append(t.done, *f)
		} else {
			w.stats.counts[timesDropped]++
		}
	}
	f.track = nil
}

// handTimes ends what is old of a receiver's frames, and hands over what is done when it is time.
func (w *writer) handTimes(r *Receiver) {
	t := &r.tracer
	if !w.traces(r) && len(t.done) == 0 {
		return
	}
	for _, s := range r.all() {
		for i := range s.traced {
			if f := &s.traced[i]; f.track != nil && f.told(w.at) {
				w.traced(r, f)
			}
		}
	}
	if len(t.done) == 0 || w.at-t.handed < timesInterval && len(t.done) < keptTimes/2 {
		return
	}
	t.handed = w.at
	t.mu.Lock()
	if len(t.ready) == 0 {
		if cap(t.ready) == 0 {
			t.ready = make([]frameTrace, 0, keptTimes)
		}
		t.ready, t.done = t.done, t.ready
	} else {
		fits := min(len(t.done), keptTimes-len(t.ready))
		t.ready = append(t.ready, t.done[:fits]...)
		w.stats.counts[timesDropped] += uint64(len(t.done) - fits)
		t.done = t.done[:0]
	}
	t.mu.Unlock()
	select {
	case t.notify <- struct{}{}:
	default:
	}
}
