// Package trace measures how long frames take through the server: from the first packet that is read to the last one
// that is sent. It is pure, except that one goroutine records what another takes.
package trace

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
	// keptTimes bounds the frames of one receiver whose times wait to be handed over: 60 tiles at 60 frames per second,
	// of half a second, in 200 kB.
	keptTimes = 2048
	// timesAge is after how long nothing is added to the times of a frame whose last packet has left, so that the last
	// frame before a pause is reported, too. unendedAge is the same for other frames: a frame that is spread over its
	// interval takes that long at one frame per second. Programs that combine the times of all hosts wait for two
	// seconds.
	timesAge   = 100 * time.Millisecond
	unendedAge = time.Second
	// maxSentStamps bounds the kernel's stamps that wait for their frames.
	maxSentStamps = 256
	// stampInterval is the least time between two packets of one receiver whose stamps the kernel is asked for when
	// sending, and stampShare that between two of any receivers, as the mean: each costs some 3 µs, in a system call
	// that reads it.
	stampInterval = 20 * time.Millisecond
	stampShare    = 10 * time.Millisecond
)

// Times are the stamps of one frame of payload v1 on its way through the server to one slot, in nanoseconds since 1970,
// 0 if they were not taken. S identifies slots, and T tracks.
type Times[S, T comparable] struct {
	Slot  S
	Track T
	// Frame is the frame number, and Bytes the frame's length.
	Frame uint32
	Bytes uint32
	// FirstIn and LastIn are when the first and the last of the frame's packets that went to the slot were read,
	// FirstOut and LastOut when the first and the last were about to be sealed and handed to the socket. Kernel and
	// Hardware are the first packet's, if the system reports them.
	FirstInHardware, FirstInKernel, FirstIn, LastIn     int64
	FirstOut, FirstOutKernel, FirstOutHardware, LastOut int64
}

// frame is what a writer notes of a frame on one slot, in one line of the cache.
//
// Only packets at the edges of a frame are noted (packetlog.Packet.Edge): the others cost nothing. Times of leaving are
// those of the writer's clock as it was last read, not much more than a run of packets before. To read the clock once
// more for every run would double the cost of tracing.
type frame[S, T comparable] struct {
	slot   S
	track  T
	number int64
	// firstIn is in nanoseconds since the engine's start. kernelIn and hardwareIn are how long before that, 0 if
	// unknown, the others how long after.
	firstIn                   int64
	kernelIn, hardwareIn      int32
	lastIn, firstOut, lastOut int32
	bytes                     uint32
	// ssrc and sequence name the first packet on the slot. ended is set when the last packet has left.
	ssrc     uint32
	sequence uint16
	ended    bool
}

// final reports whether nothing is added to the frame any more, at a time since the engine's start.
func (f *frame[S, T]) final(at time.Duration) bool {
	age := unendedAge
	if f.ended {
		age = timesAge
	}
	return at-time.Duration(f.firstIn+int64(f.lastOut)) > age
}

// span is a time of nanoseconds within two seconds. No frame stays longer.
func span(ns int64) int32 { return int32(min(max(ns, 0), math.MaxInt32)) }

// before is how long before another a stamp was taken, 0 if it was not taken.
func before(stamp, other int64) int32 {
	if stamp == 0 {
		return 0
	}
	return max(1, span(other-stamp))
}

// Stamper is a peer that can ask the kernel when a packet leaves.
type Stamper interface {
	// StampNext asks for the time at which the kernel sends the packet that is queued next.
	StampNext()
}

// Totals are the times of all frames that one writer has traced. The writer owns them, except for published durations.
type Totals struct {
	// Hold is from the first packet's arrival to its leaving, Distribution from there to the last packet's leaving, and
	// Reception from the first packet's arrival to the last one's.
	Hold, Distribution, Reception Durations
	// Dropped counts frames whose times nobody took in time.
	Dropped uint64
}

// Recorder notes the times of the frames of one receiver.
type Recorder[S, T comparable] struct {
	wanted atomic.Bool
	notify chan struct{}

	// What follows is the writer's. stamper is nil if the peer cannot stamp. stampDue is when the next packet's stamp
	// may be asked for.
	stamper  Stamper
	stampDue time.Duration
	// done are the frames to which nothing is added any more, handed is when they were last handed over.
	done   []frame[S, T]
	handed time.Duration

	mu    sync.Mutex
	ready []frame[S, T]
	sent  []sentStamp
}

// sentStamp is when the kernel and the network card sent a packet, in nanoseconds since the engine's start.
type sentStamp struct {
	ssrc             uint32
	sequence         uint16
	kernel, hardware int64
}

// MakeRecorder returns the recorder of a receiver whose peer stamps packets, or does not if the stamper is nil.
func MakeRecorder[S, T comparable](stamper Stamper) Recorder[S, T] {
	return Recorder[S, T]{notify: make(chan struct{}, 1), stamper: stamper}
}

// Want sets whether the times of frames are wanted. It is safe for any goroutine, as are all methods up to Sent.
func (r *Recorder[S, T]) Want(wanted bool) { r.wanted.Store(wanted) }

// Wanted reports whether the times of frames are wanted.
func (r *Recorder[S, T]) Wanted() bool { return r.wanted.Load() }

// Ready is signalled when times of frames wait to be taken.
func (r *Recorder[S, T]) Ready() <-chan struct{} { return r.notify }

// Take appends the times of the frames since the last call to buf.
func (r *Recorder[S, T]) Take(buf []Times[S, T], clock *packetlog.Clock) []Times[S, T] {
	now := clock.Now()
	// Wall time may have been set since the engine's start.
	begin := now.UnixNano() - int64(now.Sub(clock.Started()))
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
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.ready {
		f := &r.ready[i]
		first := begin + f.firstIn
		times := Times[S, T]{
			Slot: f.slot, Track: f.track, Frame: uint32(f.number), Bytes: f.bytes,
			FirstInHardware: earlier(first, f.hardwareIn), FirstInKernel: earlier(first, f.kernelIn),
			FirstIn: first, LastIn: first + int64(f.lastIn),
			FirstOut: first + int64(f.firstOut), LastOut: first + int64(f.lastOut),
		}
		if len(r.sent) > 0 {
			if stamp, ok := r.stampOf(f); ok {
				times.FirstOutKernel, times.FirstOutHardware = at(stamp.kernel), at(stamp.hardware)
			}
		}
		buf = append(buf, times)
	}
	clear(r.ready)
	r.ready = r.ready[:0]
	return buf
}

// stampOf finds the kernel's stamps of a frame's first packet. The caller holds the mutex.
func (r *Recorder[S, T]) stampOf(f *frame[S, T]) (sentStamp, bool) {
	for i, s := range r.sent {
		if s.ssrc == f.ssrc && s.sequence == f.sequence {
			r.sent = slices.Delete(r.sent, i, i+1)
			return s, true
		}
	}
	return sentStamp{}, false
}

// Sent takes the kernel's stamps of a packet that it was asked for, in nanoseconds since the engine's start. hardware
// is 0 if the network card does not report it.
func (r *Recorder[S, T]) Sent(ssrc uint32, sequence uint16, kernel, hardware int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.sent {
		if known := &r.sent[i]; known.ssrc == ssrc && known.sequence == sequence {
			known.kernel, known.hardware = max(known.kernel, kernel), max(known.hardware, hardware)
			return
		}
	}
	if len(r.sent) == maxSentStamps {
		r.sent = slices.Delete(r.sent, 0, maxSentStamps/2)
	}
	r.sent = append(r.sent, sentStamp{ssrc, sequence, kernel, hardware})
}

// Expect is called before a packet is queued. From time to time it has the kernel stamp the first packet of a frame.
// receivers is the number of receivers of the writer. The writer calls Expect and the methods that follow.
func (r *Recorder[S, T]) Expect(p *packetlog.Packet, receivers int, at time.Duration) {
	if r.stamper == nil || at < r.stampDue || !p.Facts.Opens || !r.wanted.Load() {
		return
	}
	r.stampDue = at + max(stampInterval, time.Duration(receivers)*stampShare)
	r.stamper.StampNext()
}

// end counts a frame to which nothing is added any more, and keeps its times if they are wanted.
func (r *Recorder[S, T]) end(f *frame[S, T], totals *Totals) {
	totals.Hold.Observe(time.Duration(f.firstOut), 1)
	totals.Distribution.Observe(time.Duration(f.lastOut), 1)
	totals.Reception.Observe(time.Duration(f.lastIn), 1)
	if r.wanted.Load() {
		if r.done == nil {
			r.done = make([]frame[S, T], 0, keptTimes)
		}
		if len(r.done) < keptTimes {
			r.done = append(r.done, *f)
		} else {
			totals.Dropped++
		}
	}
}

// Waits reports whether times of frames wait to be handed over.
func (r *Recorder[S, T]) Waits() bool { return len(r.done) > 0 }

// Hand hands over the times of frames to which nothing is added any more, when it is time.
func (r *Recorder[S, T]) Hand(totals *Totals, at time.Duration) {
	if len(r.done) == 0 || at-r.handed < timesInterval && len(r.done) < keptTimes/2 {
		return
	}
	r.handed = at
	r.mu.Lock()
	if len(r.ready) == 0 {
		if cap(r.ready) == 0 {
			r.ready = make([]frame[S, T], 0, keptTimes)
		}
		r.ready, r.done = r.done, r.ready
	} else {
		fits := min(len(r.done), keptTimes-len(r.ready))
		r.ready = append(r.ready, r.done[:fits]...)
		totals.Dropped += uint64(len(r.done) - fits)
		r.done = r.done[:0]
	}
	r.mu.Unlock()
	select {
	case r.notify <- struct{}{}:
	default:
	}
}

// Line notes the frames of one slot: the frame that leaves at present, and the one before. The writer owns it.
type Line[S, T comparable] struct {
	frames [2]frame[S, T]
	// present is the place of the frame that leaves at present.
	present int
	// final is the newest frame to which nothing is added any more.
	final struct {
		track  T
		number int64
	}
}

// Passage is a packet at the edge of a frame as it was queued on a slot.
type Passage[S, T comparable] struct {
	Slot   S
	Track  T
	Packet *packetlog.Packet
	// SSRC, Sequence and Marker are those of the slot's packet. The marker is on the last packet of a frame.
	SSRC     uint32
	Sequence uint16
	Marker   bool
	// At is when the packet was queued, since the engine's start.
	At time.Duration
}

// Note notes a packet at the edge of a frame.
func (l *Line[S, T]) Note(r *Recorder[S, T], totals *Totals, p *Passage[S, T]) {
	f := &l.frames[l.present]
	if f.number != p.Packet.Facts.Frame || f.track != p.Track {
		if f = l.another(r, totals, p); f == nil {
			return
		}
	}
	f.lastIn, f.lastOut = max(f.lastIn, span(p.Packet.Order-f.firstIn)), span(int64(p.At)-f.firstIn)
	f.ended = f.ended || p.Marker
}

// another finds the frame before the present one, or begins the next in its place. It returns nil for packets of frames
// before those, and of frames to which nothing is added any more.
func (l *Line[S, T]) another(r *Recorder[S, T], totals *Totals, p *Passage[S, T]) *frame[S, T] {
	packet, number := p.Packet, p.Packet.Facts.Frame
	other := &l.frames[1-l.present]
	if other.number == number && other.track == p.Track {
		return other
	}
	if present := &l.frames[l.present]; present.track == p.Track && number < present.number ||
		l.final.track == p.Track && number <= l.final.number {
		return nil
	}
	l.end(r, totals, other)
	*other = frame[S, T]{
		slot: p.Slot, track: p.Track, number: number, bytes: frameBytes(packet.Payload), ssrc: p.SSRC,
		sequence: p.Sequence,
		firstIn:  packet.Order, kernelIn: before(packet.Kernel, packet.Order),
		hardwareIn: before(packet.Hardware, packet.Order),
		firstOut:   span(int64(p.At) - packet.Order), lastOut: span(int64(p.At) - packet.Order),
	}
	l.present = 1 - l.present
	return other
}

// end ends a frame of the slot, if it is one.
func (l *Line[S, T]) end(r *Recorder[S, T], totals *Totals, f *frame[S, T]) {
	var none T
	if f.track == none {
		return
	}
	if l.final.track != f.track || l.final.number < f.number {
		l.final.track, l.final.number = f.track, f.number
	}
	r.end(f, totals)
	f.track = none
}

// Sweep ends frames to which nothing is added any more.
func (l *Line[S, T]) Sweep(r *Recorder[S, T], totals *Totals, at time.Duration) {
	var none T
	for i := range l.frames {
		if f := &l.frames[i]; f.track != none && f.final(at) {
			l.end(r, totals, f)
		}
	}
}

// frameBytes is the frame's length, from the descriptor's last four bytes.
func frameBytes(body []byte) uint32 {
	if len(body) < payload.DescriptorSize {
		return 0
	}
	return binary.BigEndian.Uint32(body[payload.DescriptorSize-4:])
}
