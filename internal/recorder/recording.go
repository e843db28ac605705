package recorder

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/recording"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// chunkBytes is the size from which records are passed to the goroutine that writes, chunkTime the time.
	chunkBytes = 1 << 20
	chunkTime  = 250 * time.Millisecond
	// maxChunks bounds the chunks that wait for the disk: those of a minute without frames.
	maxChunks = 256
)

// Recording is the recording of one room. The methods are safe for any goroutine.
type Recording struct {
	recorder *Recorder
	log      *zap.Logger
	disk     *disk
	chunks   chan *chunk
	// queued is the memory of the chunks that the disk has not taken, in bytes.
	queued atomic.Int64
	// failed is the time of the last failure of the disk in nanoseconds since 1970, 0 while the disk works.
	failed atomic.Int64
	// unwritten counts frames that were in the queue when the disk failed.
	unwritten atomic.Uint64
	// failing is set from the first failure of the disk to the next success. The goroutine that writes owns it.
	failing bool
	// written is closed when the goroutine that writes has ended.
	written chan struct{}

	mu       sync.Mutex
	head     recording.Head
	readings []*reading
	state    state
	nextID   uint32
	stopped  bool
	buffer   *chunk
	begun    time.Time // when buffer got its first record
	// size is the length of the present segment. cut is set if the segment cannot continue, because the disk failed or
	// records are missing.
	size int64
	cut  bool
	// lost are the losses since the beginning, told the total when they were last recorded.
	lost recording.Lost
	told uint64
}

// state is the state of a room at the beginning of a segment: messages by key, and publications, both in order.
type state struct {
	messages     []keyed
	publications []*recording.Publication
}

type keyed struct {
	key     string
	message signal.Message
}

// set replaces the message of a key. A nil message removes it, together with all keys below it.
func (s *state) set(key string, m signal.Message) {
	if m == nil {
		s.messages = slices.DeleteFunc(s.messages, func(k keyed) bool {
			return k.key == key || strings.HasPrefix(k.key, key+"\x00")
		})
		return
	}
	for i := range s.messages {
		if s.messages[i].key == key {
			s.messages[i].message = m
			return
		}
	}
	s.messages = append(s.messages, keyed{key, m})
}

// Publish adds a publication, whose tracks are in the order of tiles and then of qualities, and returns its ID. No
// track is read before Read.
func (r *Recording) Publish(
	now time.Time, participant string, q recording.Qualities, description volumetric.Publication,
) uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nextID++
	p := &recording.Publication{At: now, ID: r.nextID, Participant: participant, Qualities: q, Description: description}
	r.state.publications = append(r.state.publications, p)
	r.record(now, p)
	return p.ID
}

// Read begins or ends the reading of a track of a publication.
func (r *Recording) Read(now time.Time, publication uint32, tile int, q volumetric.Quality, t *track.Track, on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.readings, func(other *reading) bool { return other.track == t })
	switch {
	case on && at < 0 && !r.stopped:
		r.readings = append(r.readings, newReading(t, publication, tile, q, r.recorder.config.FrameBytes))
	case !on && at >= 0:
		r.readOne(now, r.readings[at])
		r.readings[at].close()
		r.readings = slices.Delete(r.readings, at, at+1)
	}
}

// Unpublish ends a publication whose tracks are still open. The packets that have arrived are recorded.
func (r *Recording) Unpublish(now time.Time, publication uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readings = slices.DeleteFunc(r.readings, func(g *reading) bool {
		if g.publication != publication {
			return false
		}
		r.readOne(now, g)
		g.close()
		return true
	})
	r.state.publications = slices.DeleteFunc(r.state.publications,
		func(p *recording.Publication) bool { return p.ID == publication })
}

// Message records a message to the whole room.
func (r *Recording) Message(now time.Time, m signal.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.message(now, m)
}

func (r *Recording) message(now time.Time, m signal.Message) {
	text, err := signal.Encode(m)
	if err != nil {
		r.log.Error("a message could not be recorded", zap.Error(err))
		return
	}
	r.record(now, &recording.Message{At: now, Text: text})
}

// State sets the message with which later segments begin, for a key such as "p\x00alice". A nil message removes the key
// and all keys that continue it after \x00. The message must not change later.
func (r *Recording) State(key string, m signal.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.set(key, m)
}

// Stop ends the recording. The rest is written in the background; Wait waits for it.
func (r *Recording) Stop(now time.Time, reason string) {
	r.recorder.remove(r)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return
	}
	for _, g := range r.readings {
		r.readOne(now, g)
		g.close()
	}
	r.readings = nil
	r.tellLost(now)
	r.endSegment(now, &recording.End{At: now, Reason: reason})
	r.stopped = true
	close(r.chunks)
}

// abandon ends the recording after a panic, without the packets that are not recorded.
func (r *Recording) abandon() {
	r.recorder.remove(r)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return
	}
	r.readings, r.stopped = nil, true
	close(r.chunks)
	r.log.Error("the recording has ended because of a panic")
}

// Wait waits until everything is written, or the context ends.
func (r *Recording) Wait(ctx context.Context) {
	select {
	case <-r.written:
	case <-ctx.Done():
	}
}

// step reads the logs of all tracks and passes due chunks on.
func (r *Recording) step(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return
	}
	for _, g := range r.readings {
		r.readOne(now, g)
	}
	r.tellLost(now)
	if !r.buffer.empty() && now.Sub(r.begun) >= chunkTime {
		r.pass()
	}
}

// readOne reads the log of one track.
func (r *Recording) readOne(now time.Time, g *reading) {
	overrun, incomplete := g.read(now, receiving{r, now})
	r.lost.Overrun += overrun
	r.lost.Incomplete += incomplete
	r.recorder.counts.overrun.Add(overrun)
	r.recorder.counts.incomplete.Add(incomplete)
}

// receiving is the sink of readings.
type receiving struct {
	*Recording
	now time.Time
}

// frame implements sink.
func (r receiving) frame(record *recording.Frame, f *payload.Frame) {
	if r.admit(r.now) {
		r.buffer.frame(record, f)
		r.appended(r.now)
	}
}

// unit implements sink.
func (r receiving) unit(u *recording.Unit) {
	if r.admit(r.now) {
		r.buffer.record(u)
		r.appended(r.now)
	}
}

// admit reports whether there is room for a frame, and begins a segment if necessary. A frame without room is counted.
func (r *Recording) admit(now time.Time) bool {
	c := &r.recorder.config
	if r.queued.Load() < c.QueueBytes && r.recorder.queued.Load() < c.TotalQueueBytes && r.prepare(now) {
		return true
	}
	r.discard(1)
	return false
}

// discard counts frames that the disk did not take.
func (r *Recording) discard(frames int) {
	r.lost.Discarded += uint64(frames)
	r.recorder.counts.discarded.Add(uint64(frames))
}

// appended counts a frame that was appended to the buffer.
func (r *Recording) appended(now time.Time) {
	r.buffer.frames++
	r.grown(now)
}

// record appends a record other than a frame.
func (r *Recording) record(now time.Time, record recording.Record) {
	if r.stopped {
		return
	}
	if !r.prepare(now) {
		return
	}
	r.buffer.record(record)
	r.grown(now)
}

// grown passes a chunk on if it is long enough.
func (r *Recording) grown(now time.Time) {
	if r.buffer.size() >= chunkBytes {
		r.pass()
		r.begun = now
	}
}

// prepare makes sure that a record can be appended, and begins a new segment if the present one is full or cut. It
// reports false while the disk has failed.
func (r *Recording) prepare(now time.Time) bool {
	if failed := r.failed.Load(); failed != 0 {
		r.cut = true
		if now.UnixNano()-failed < int64(r.recorder.config.RetryInterval) {
			return false
		}
		r.failed.Store(0)
	}
	c := &r.recorder.config
	full := r.size+r.buffer.size() >= c.SegmentBytes || now.Sub(r.head.Begun) >= c.SegmentTime
	if r.head.Segment > 0 && !full && !r.cut {
		if r.buffer.empty() {
			r.begun = now
		}
		return true
	}
	if r.head.Segment > 0 && !r.cut {
		r.endSegment(now, &recording.End{At: now, Continues: true, Reason: "the segment is full"})
	}
	r.beginSegment(now)
	return true
}

// beginSegment begins a segment with the state of the room and the losses.
func (r *Recording) beginSegment(now time.Time) {
	// The frames of a segment that was cut are in no segment.
	r.discard(r.buffer.frames)
	r.buffer.release()
	r.buffer = &chunk{free: r.recorder.buffers}
	r.cut, r.size, r.begun = false, 0, now
	r.head.Segment++
	r.head.Begun = now
	r.buffer.segment, r.buffer.first = r.head.Segment, true
	r.buffer.record(&r.head)
	for _, k := range r.state.messages {
		if text, err := signal.Encode(k.message); err == nil {
			r.buffer.record(&recording.Message{At: now, Text: text})
		}
	}
	for _, p := range r.state.publications {
		again := *p
		again.At = now
		r.buffer.record(&again)
	}
	if lost := r.lost; lost.Total() > 0 {
		lost.At, r.told = now, lost.Total()
		r.buffer.record(&lost)
	}
}

// endSegment ends the present segment.
func (r *Recording) endSegment(now time.Time, end *recording.End) {
	if r.head.Segment == 0 || r.cut || r.failed.Load() != 0 {
		return
	}
	r.buffer.record(end)
	r.buffer.last = true
	r.pass()
	r.begun = now
}

// pass passes the buffer to the goroutine that writes. If the queue has no place, the segment is cut.
func (r *Recording) pass() {
	c := r.buffer
	r.buffer = c.follow()
	// The goroutine that writes owns a chunk after it was passed.
	size, memory := c.size(), c.memory()
	r.queued.Add(memory)
	r.recorder.queued.Add(memory)
	select {
	case r.chunks <- c:
		r.size += size
	default:
		r.queued.Add(-memory)
		r.recorder.queued.Add(-memory)
		r.discard(c.frames)
		r.cut = true
		c.release()
	}
}

// tellLost records the losses if they have grown and the disk takes records.
func (r *Recording) tellLost(now time.Time) {
	r.discard(int(r.unwritten.Swap(0)))
	if r.lost.Total() == r.told || r.queued.Load() >= r.recorder.config.QueueBytes || !r.prepare(now) {
		return
	}
	lost := r.lost
	lost.At, r.told = now, lost.Total()
	r.record(now, &lost)
}

// write writes chunks until the recording ends. It is the goroutine that writes.
func (r *Recording) write() {
	defer close(r.written)
	ticker := time.NewTicker(r.recorder.config.SyncInterval)
	defer ticker.Stop()
	for {
		var err error
		select {
		case c, open := <-r.chunks:
			if !open {
				if err := r.disk.close(time.Now()); err != nil {
					r.fails(err)
				}
				return
			}
			err = r.writeChunk(c)
		case now := <-ticker.C:
			err = r.disk.flush(now)
		}
		if err != nil {
			r.fails(err)
		}
	}
}

// writeChunk writes one chunk and releases its memory.
func (r *Recording) writeChunk(c *chunk) error {
	counts := &r.recorder.counts
	written, err := r.disk.write(c, time.Now())
	r.queued.Add(-c.memory())
	r.recorder.queued.Add(-c.memory())
	if err == nil && written {
		counts.bytes.Add(uint64(c.size()))
		counts.frames.Add(uint64(c.frames))
		if r.failing {
			r.failing = false
			r.log.Info("the recording continues", zap.Int("segment", c.segment))
		}
	} else {
		r.unwritten.Add(uint64(c.frames))
	}
	c.release()
	return err
}

// fails ends the present segment until the next attempt. The first failure is logged.
func (r *Recording) fails(err error) {
	r.failed.Store(time.Now().UnixNano())
	r.recorder.counts.failures.Add(1)
	if !r.failing {
		r.failing = true
		r.log.Error("the room is not recorded for now; frames are discarded", zap.Error(err),
			zap.Duration("next_attempt", r.recorder.config.RetryInterval))
	}
}
