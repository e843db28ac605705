// Package trace measures the times of frames on the way through the server: from the first packet read to the last
// packet sent. It is pure, except that one goroutine records the times and another reads them.
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
	// timesInterval is the interval at which the times of frames are handed over: twice per second.
	timesInterval = 500 * time.Millisecond
	// keptTimes bounds the frames of one receiver whose times wait to be handed over: half a second of 60 tiles at 60
	// frames per second, in 200 kB.
	keptTimes = 2048
	// timesAge is the time after which a frame whose last packet has left is final, so that the last frame before a
	// pause is reported, too. unendedAge is the same for other frames: a frame that is spread over its interval takes
	// one second at one frame per second. Programs that combine the times of all hosts wait for two seconds.
	timesAge   = 100 * time.Millisecond
	unendedAge = time.Second
	// maxSentStamps bounds the kernel's send stamps that wait for their frames.
	maxSentStamps = 256
	// stampInterval is the minimum time between two packets of one receiver for which the kernel is asked for a send
	// stamp. stampShare is the mean minimum time between two packets of any receivers: each stamp costs some 3 µs for
	// the system call that reads it.
	stampInterval = 20 * time.Millisecond
	stampShare    = 10 * time.Millisecond
)

// Times are the time stamps of one frame of payload v1 on its way through the server to one slot, in nanoseconds since
// 1970, 0 if not taken. S identifies slots, T tracks.
type Times[S, T comparable] struct {
	Slot  S
	Track T
	// Frame is the frame number, Bytes the length of the frame.
	Frame uint32
	Bytes uint32
	// FirstIn and LastIn are the times at which the first and the last packet of the frame to the slot were read.
	// FirstOut and LastOut are the times just before these packets were sealed and passed to the socket. The Kernel and
	// Hardware times belong to the first packet, if the system reports them.
	FirstInHardware, FirstInKernel, FirstIn, LastIn     int64
	FirstOut, FirstOutKernel, FirstOutHardware, LastOut int64
}

// Relay has the time of the last packet of one frame in the nodes of a cluster before this one.
type Relay struct {
	// Track is the index of the track in its publication, tile × qualities + quality. Frame is the frame number.
	Track int
	Frame uint32
	// LastIn is the time at which the publisher's node had read the last packet, in nanoseconds since 1970 by the clock
	// of this node. Held is the sum of the times from there, or from the arrival at a further node, to the departure.
	LastIn int64
	Held   time.Duration
}

// frame is the record of a frame on one slot, one cache line long.
//
// Only packets at the edges of a frame are recorded (packetlog.Packet.Edge); the others cost nothing. Departure times
// are the last readings of the writer's clock, little more than a run of packets before. Another reading of the clock
// for every run would double the cost of tracing.
type frame[S, T comparable] struct {
	slot   S
	track  T
	number int64
	// firstIn is in nanoseconds since the engine's start. kernelIn and hardwareIn are the times before firstIn, 0 if
	// unknown; the other fields are times after firstIn.
	firstIn                   int64
	kernelIn, hardwareIn      int32
	lastIn, firstOut, lastOut int32
	bytes                     uint32
	// ssrc and sequence identify the first packet on the slot. ended is set when the last packet has left.
	ssrc     uint32
	sequence uint16
	ended    bool
}

// final reports whether the frame no longer changes, at a time since the engine's start.
func (f *frame[S, T]) final(at time.Duration) bool {
	age := unendedAge
	if f.ended {
		age = timesAge
	}
	return at-time.Duration(f.firstIn+int64(f.lastOut)) > age
}

// span returns a duration clamped to 0 to 2.1 s, the range of an int32 in nanoseconds. No frame stays longer.
func span(ns int64) int32 { return int32(min(max(ns, 0), math.MaxInt32)) }

// before returns how long before other the stamp was taken, at least 1, or 0 if the stamp was not taken.
func before(stamp, other int64) int32 {
	if stamp == 0 {
		return 0
	}
	return max(1, span(other-stamp))
}

// Stamper is a peer that can ask the kernel for the send time of a packet.
type Stamper interface {
	// StampNext requests the time at which the kernel sends the next queued packet.
	StampNext()
}

// Totals are the durations of all frames that one writer has traced. The writer owns them, except for published
// durations.
type Totals struct {
	// Hold is the time from arrival of the first packet to its departure, Distribution from there to departure of the
	// last packet, and Reception from arrival of the first packet to arrival of the last.
	Hold, Distribution, Reception Durations
	// Dropped counts frames whose times were not read in time.
	Dropped uint64
}

// Recorder records the times of the frames of one receiver.
type Recorder[S, T comparable] struct {
	wanted atomic.Bool
	notify chan struct{}

	// The writer owns the fields below. stamper is nil if the peer cannot stamp. stampDue is the time from which the
	// next stamp may be requested.
	stamper  Stamper
	stampDue time.Duration
	// done are the final frames, handed is the time of the last hand-over.
	done   []frame[S, T]
	handed time.Duration

	mu    sync.Mutex
	ready []frame[S, T]
	sent  []sentStamp
}

// sentStamp holds the times at which the kernel and the network card sent a packet, in nanoseconds since the engine's
// start.
type sentStamp struct {
	ssrc             uint32
	sequence         uint16
	kernel, hardware int64
}

// MakeRecorder returns the recorder of a receiver. The stamper is nil if the receiver's peer cannot stamp packets.
func MakeRecorder[S, T comparable](stamper Stamper) Recorder[S, T] {
	return Recorder[S, T]{notify: make(chan struct{}, 1), stamper: stamper}
}

// Want sets whether the times of frames are wanted. Want and all methods up to Sent are safe for any goroutine.
func (r *Recorder[S, T]) Want(wanted bool) { r.wanted.Store(wanted) }

// Wanted reports whether the times of frames are wanted.
func (r *Recorder[S, T]) Wanted() bool { return r.wanted.Load() }

// Ready is signalled when times of frames are available to Take.
func (r *Recorder[S, T]) Ready() <-chan struct{} { return r.notify }

// Take appends the times of the frames since the last call to buf.
func (r *Recorder[S, T]) Take(buf []Times[S, T], clock *packetlog.Clock) []Times[S, T] {
	now := clock.Now()
	// The wall clock may have been set since the engine's start.
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

// stampOf removes and returns the kernel's stamps of a frame's first packet. The caller holds the mutex.
func (r *Recorder[S, T]) stampOf(f *frame[S, T]) (sentStamp, bool) {
	for i, s := range r.sent {
		if s.ssrc == f.ssrc && s.sequence == f.sequence {
			r.sent = slices.Delete(r.sent, i, i+1)
			return s, true
		}
	}
	return sentStamp{}, false
}

// Sent adds the requested send stamps of a packet, in nanoseconds since the engine's start. hardware is 0 if the
// network card does not report its time.
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

// Expect is called before a packet is queued. From time to time it makes the kernel stamp the first packet of a frame.
// receivers is the number of receivers of the writer. Only the writer calls Expect and the methods below.
func (r *Recorder[S, T]) Expect(p *packetlog.Packet, receivers int, at time.Duration) {
	if r.stamper == nil || at < r.stampDue || !p.Facts.Opens || !r.wanted.Load() {
		return
	}
	r.stampDue = at + max(stampInterval, time.Duration(receivers)*stampShare)
	r.stamper.StampNext()
}

// end counts a final frame and keeps its times if they are wanted.
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

// Hand hands over the times of final frames when timesInterval has passed, or earlier if half of the room is used.
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

// Line records the frames of one slot: the current frame and the frame before. The writer owns the Line.
type Line[S, T comparable] struct {
	frames [2]frame[S, T]
	// present is the index of the current frame.
	present int
	// final is the newest final frame.
	final struct {
		track  T
		number int64
	}
}

// Passage is a packet at the edge of a frame as queued on a slot.
type Passage[S, T comparable] struct {
	Slot   S
	Track  T
	Packet *packetlog.Packet
	// SSRC, Sequence and Marker are the values of the packet on the slot. The marker is on the last packet of a frame.
	SSRC     uint32
	Sequence uint16
	Marker   bool
	// At is the time at which the packet was queued, since the engine's start.
	At time.Duration
}

// Note records a packet at the edge of a frame.
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

// another returns the frame before the current frame, or begins the next frame in its place. another returns nil for
// packets of older frames and of final frames.
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

// end ends a frame of the slot, if the record is in use.
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

// Sweep ends the final frames.
func (l *Line[S, T]) Sweep(r *Recorder[S, T], totals *Totals, at time.Duration) {
	var none T
	for i := range l.frames {
		if f := &l.frames[i]; f.track != none && f.final(at) {
			l.end(r, totals, f)
		}
	}
}

// frameBytes returns the length of the frame, from the last four bytes of the descriptor.
func frameBytes(body []byte) uint32 {
	if len(body) < payload.DescriptorSize {
		return 0
	}
	return binary.BigEndian.Uint32(body[payload.DescriptorSize-4:])
}
