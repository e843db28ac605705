// Package track implements an incoming RTP stream as ingress and egress share it. One reader keeps the packets, facts
// and rate of the stream up to date; any number of followers read the log. The reader is an ingress. The followers
// belong to the writers of receivers.
package track

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/turn"
	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/pkg/switching"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Config describes an incoming stream.
type Config struct {
	Codec   volumetric.Codec
	Quality volumetric.Quality
	// Group identifies the publication of the track. The tracks of one publication share frame numbers, which are all
	// extended alike when they wrap around. Slots select by group. 0 is a track without a group.
	Group uint64
	// VR2Gather is set if the track arrives in VR2Gather's own packets: video if the codec is payload v1, otherwise
	// audio.
	VR2Gather bool
}

// Source delivers the packets of a track while the track is bound to a publisher's connection. The methods are safe for
// any goroutine. Without a binding they have no effect and return 0.
type Source interface {
	// Unbind ends the binding.
	Unbind()
	// RequestKeyFrame makes the connection look for pending key frame requests.
	RequestKeyFrame()
	// RTT returns the round-trip time to the publisher, 0 while unknown.
	RTT() time.Duration
	// ParityShare returns the share of parity that the publisher's path needs.
	ParityShare() float64
}

// Follower is a writer that reads the log of a track. The methods are safe for any goroutine.
type Follower interface {
	// Signal is called after the reader has moved the log's head. Signal returns the turn to run or wake for the
	// follower, or nil if the follower is already signalled.
	Signal() *turn.Turn
	// Gapped is called after packets of the track have been given up.
	Gapped()
	// Ended is called when the track is closed.
	Ended()
}

// Mapping is the content of a publisher's latest sender report: a timestamp, the capture time of that timestamp, and
// the arrival time of the report.
type Mapping struct {
	Timestamp        uint32
	Capture, Arrived time.Time
}

// Track is one incoming RTP stream, with the cache of its packets.
type Track struct {
	id      switching.TrackID
	tracks  *Tracks
	quality volumetric.Quality
	group   uint64
	format

	log *packetlog.Log

	// Writers read the fields above for every packet; the reader changes some of the fields below for every packet. The
	// gap is two cache lines of 64 bytes, because processors fetch pairs of lines.
	_ [128]byte

	// opened is the position of the newest packet that opened a frame. taken is that of the first packet after the last
	// takeover, -1 before the first takeover.
	opened, taken atomic.Int64
	// paused is the time at which the publisher was last told to pause the track. expected is the time from which
	// arriving packets were sent after the publisher was told to resume. Both are in nanoseconds since the engine's
	// start, 0 before the first time.
	paused, expected atomic.Int64
	// mapping is nil before the publisher's first sender report.
	mapping atomic.Pointer[Mapping]
	// named is the codec of the newest frame of a converted track, nil before the first.
	named  atomic.Pointer[volumetric.FourCC]
	losses Losses
	// keyFrameWanted is set from the request of a key frame until the publisher has been asked or a key frame has
	// arrived.
	keyFrameWanted atomic.Bool
	// followers is the list of followers that read the log. The list is replaced, never changed.
	followers atomic.Pointer[[]Follower]

	// interval is the frame interval in nanoseconds.
	interval atomic.Int64

	packets, bytes, frames atomic.Uint64
	rate                   frameRate

	mu     sync.Mutex
	closed bool
	// source is nil before the first binding.
	source atomic.Pointer[Source]
}

// Stats are the counters of a track's packets, including repairs.
type Stats struct {
	Packets, Bytes, Frames uint64
	// CacheBytes is the memory of the track's packet cache.
	CacheBytes int64
}

// Tracks are the open tracks of one engine.
type Tracks struct {
	clock  *packetlog.Clock
	limits packetlog.Limits
	budget *packetlog.Budget
	// open are the tracks by switching.TrackID.
	open sync.Map
	last atomic.Uint64
}

// NewTracks returns an empty set. The limits apply to the cache of each track, the budget to all caches.
func NewTracks(clock *packetlog.Clock, limits packetlog.Limits, budget *packetlog.Budget) *Tracks {
	return &Tracks{clock: clock, limits: limits, budget: budget}
}

// New adds a track. The track has no packets until it is bound to a source.
func (s *Tracks) New(cfg Config) *Track {
	t := &Track{
		id:      switching.TrackID(s.last.Add(1)),
		tracks:  s,
		quality: cfg.Quality,
		group:   cfg.Group,
		format:  newFormat(cfg.Codec, cfg.VR2Gather),
		log:     packetlog.New(s.limits, s.budget),
	}
	t.opened.Store(-1)
	t.taken.Store(-1)
	t.interval.Store(int64(pacing.DefaultInterval))
	t.followers.Store(&[]Follower{})
	s.open.Store(t.id, t)
	return t
}

// Find returns the open track with that identifier, or nil if there is none.
func (s *Tracks) Find(id switching.TrackID) *Track {
	if t, ok := s.open.Load(id); ok {
		return t.(*Track)
	}
	return nil
}

// Usage returns the number of open tracks and the memory of their caches in bytes.
func (s *Tracks) Usage() (tracks int, bytes int64) {
	s.open.Range(func(_, t any) bool {
		tracks++
		bytes += t.(*Track).log.Bytes()
		return true
	})
	return tracks, bytes
}

// Close closes all tracks.
func (s *Tracks) Close() {
	s.open.Range(func(_, t any) bool {
		t.(*Track).Close()
		return true
	})
}

// ID returns the identifier of the track within the engine.
func (t *Track) ID() switching.TrackID { return t.id }

// Quality returns the quality of the track.
func (t *Track) Quality() volumetric.Quality { return t.quality }

// Group returns the group of the publication of the track.
func (t *Track) Group() uint64 { return t.group }

// Log returns the cache of the track's packets. Only the reader appends and removes.
func (t *Track) Log() *packetlog.Log { return t.log }

// Opened returns the position in the log of the newest packet that opened a frame, -1 before the first.
func (t *Track) Opened() int64 { return t.opened.Load() }

// TakeOver records that the next packet comes from another connection than the packets before, which may be packets of
// another server's track. The reader calls TakeOver, and the owner of the track when the next connection is not bound
// yet.
func (t *Track) TakeOver() { t.taken.Store(t.log.Head()) }

// Taken returns the position in the log of the first packet after the last TakeOver, -1 before the first.
func (t *Track) Taken() int64 { return t.taken.Load() }

// Interval returns the frame interval.
func (t *Track) Interval() time.Duration { return time.Duration(t.interval.Load()) }

// SetInterval sets the frame interval. Only the reader calls SetInterval.
func (t *Track) SetInterval(d time.Duration) { t.interval.Store(int64(d)) }

// Mapping returns the latest mapping, nil before the publisher's first sender report.
func (t *Track) Mapping() *Mapping { return t.mapping.Load() }

// Map sets the mapping. Only the reader calls Map.
func (t *Track) Map(m Mapping) { t.mapping.Store(&m) }

// Stats returns the counters of the track.
func (t *Track) Stats() Stats {
	return Stats{Packets: t.packets.Load(), Bytes: t.bytes.Load(), Frames: t.frames.Load(), CacheBytes: t.log.Bytes()}
}

// FrameCodec returns the codec named by the newest frame of a VR2Gather track, zero if the frame names none. FrameCodec
// returns false before the first frame and for other tracks.
func (t *Track) FrameCodec() (codec volumetric.FourCC, ok bool) {
	if named := t.named.Load(); named != nil {
		return *named, true
	}
	return codec, false
}

// NameCodec sets the codec of the newest frame. Only the reader calls NameCodec.
func (t *Track) NameCodec(codec volumetric.FourCC) {
	if named := t.named.Load(); named == nil || *named != codec {
		t.named.Store(&codec)
	}
}

// Pause records that the publisher is told to pause the track. Frames in transit still arrive for up to a round trip.
func (t *Track) Pause() { t.paused.Store(t.tracks.clock.Since(t.tracks.clock.Now())) }

// Expect records that the publisher is told to resume the paused track. Slots that select the track wait for a frame
// from after the pause. A slot that began with a frame from before the pause would miss the frames between.
func (t *Track) Expect() {
	var rtt time.Duration
	if s := t.Source(); s != nil {
		rtt = s.RTT()
	}
	now, interval := t.tracks.clock.Since(t.tracks.clock.Now()), t.interval.Load()
	// The last frame before the pause arrives less than a round trip after the pause, plus 0.4 of the interval, as
	// publishers spread their packets. More frames follow if the resumption reaches the publisher before the next
	// capture.
	last := min(t.paused.Load(), now-interval) + int64(rtt) + interval/2
	t.expected.Store(max(now, last))
}

// Expected returns the time from which arriving packets were sent after the last pause, in nanoseconds since the
// engine's start.
func (t *Track) Expected() int64 { return t.expected.Load() }

// Close ends the track. The track is unbound, its memory is released, and slots that it feeds are silent until they
// select another track.
func (t *Track) Close() {
	t.mu.Lock()
	followers := *t.followers.Load()
	closed := t.closed
	t.closed = true
	t.followers.Store(&[]Follower{})
	t.mu.Unlock()
	if closed {
		return
	}
	if s := t.Source(); s != nil {
		s.Unbind()
	}
	t.tracks.open.Delete(t.id)
	t.log.Clear()
	for _, f := range followers {
		f.Ended()
	}
}

// Source returns the source of the track's packets, nil before the first binding.
func (t *Track) Source() Source {
	if s := t.source.Load(); s != nil {
		return *s
	}
	return nil
}

// Enter sets the source of the track, which is about to be bound. Enter returns false if the track is closed.
func (t *Track) Enter(s Source) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.source.Store(&s)
	}
	return !t.closed
}

// Join adds a follower, which is signalled from the next packet on. Join returns the position of that packet in the
// log, and false if the track is closed.
func (t *Track) Join(f Follower) (position int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return 0, false
	}
	list := append(slices.Clone(*t.followers.Load()), f)
	t.followers.Store(&list)
	return t.log.Head(), true
}

// Part removes a follower.
func (t *Track) Part(f Follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(*t.followers.Load()), func(other Follower) bool { return other == f })
	t.followers.Store(&list)
}

// Followers returns the number of followers.
func (t *Track) Followers() int { return len(*t.followers.Load()) }

// Publish appends a packet with its facts to the log. Only the reader calls Publish, and calls Signal afterwards. A
// panic ends the process, because the writers of all clients read the log.
func (t *Track) Publish(p *packetlog.Packet) {
	defer panics.Shared()
	opens := p.Facts.Opens
	t.log.Append(p)
	if opens {
		t.opened.Store(t.log.Head() - 1)
	}
}

// Count counts a packet that is about to be published. Count reports whether the packet opens a frame other than audio.
// Only the reader calls Count.
func (t *Track) Count(p *packetlog.Packet) (opens bool) {
	t.packets.Add(1)
	t.bytes.Add(uint64(len(p.Payload)))
	if p.Class == packetlog.Media || p.Class == packetlog.Audio {
		t.rate.add(len(p.Payload), p.Facts.Opens, time.Duration(p.Order))
	}
	if !p.Facts.Opens || t.audio {
		return false
	}
	t.frames.Add(1)
	if t.needsKey && p.Facts.Key {
		// The key frame serves all receivers that have asked before.
		t.keyFrameWanted.Store(false)
	}
	return true
}

// Signal signals the followers that there are packets to read. Signal adds the turns to run or wake to the list, each
// once.
func (t *Track) Signal(toWake []*turn.Turn) []*turn.Turn {
	for _, f := range *t.followers.Load() {
		if w := f.Signal(); w != nil && !slices.Contains(toWake, w) {
			toWake = append(toWake, w)
		}
	}
	return toWake
}

// WantKeyFrame requests a key frame from the publisher as soon as the limit allows. WantKeyFrame is cheap enough to
// call for every packet.
func (t *Track) WantKeyFrame() {
	if t.keyFrameWanted.Load() || t.keyFrameWanted.Swap(true) {
		return
	}
	if s := t.Source(); s != nil {
		s.RequestKeyFrame()
	}
}

// KeyFrameWanted reports whether a key frame request to the publisher is pending.
func (t *Track) KeyFrameWanted() bool { return t.keyFrameWanted.Load() }

// KeyFrameAsked records that the publisher has been asked for a key frame.
func (t *Track) KeyFrameAsked() { t.keyFrameWanted.Store(false) }

// UplinkParity returns the share of parity that the publisher's path needs. UplinkParity is 0 for a nil track, and for
// tracks other than payload v1, which have no parity.
func (t *Track) UplinkParity() float64 {
	if t == nil || !t.framed {
		return 0
	}
	if s := t.Source(); s != nil {
		return s.ParityShare()
	}
	return 0
}

// Now returns the time since the engine's start in nanoseconds, the time base of packets' Order.
func (t *Track) Now() int64 { return t.tracks.clock.Since(t.tracks.clock.Now()) }

// Arrival returns the time at which a packet of the track arrived. now is the present time, because the wall clock may
// have been set since the engine's start.
func (t *Track) Arrival(p *packetlog.Packet, now time.Time) time.Time {
	return now.Add(time.Duration(p.Order - t.tracks.clock.Since(now)))
}
