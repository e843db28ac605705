package choice

import (
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Tracker measures how long it takes from a request to the first frame of the requested quality. It is stepped with the
// time of what it is told. Tiles are tracked one by one, in volumetric.ModeDescriptions every description of them: a
// Track is the tile, with quality volumetric.QualityOff, or the description.
type Tracker struct {
	tracks map[volumetric.TrackRef]*tracked
}

// tracked is what is known of one tile or description.
type tracked struct {
	// number and quality are the newest decoded frame's.
	known   bool
	number  int64
	quality volumetric.Quality
	decoded time.Time
	// off is when it was last switched off.
	off time.Time
	// wanted was requested at a time and has not shown yet.
	pending   bool
	wanted    volumetric.Quality
	requested time.Time
}

// NewTracker makes a tracker that knows of nothing.
func NewTracker() *Tracker { return &Tracker{tracks: make(map[volumetric.TrackRef]*tracked)} }

func (t *Tracker) track(ref volumetric.TrackRef) *tracked {
	tr := t.tracks[ref]
	if tr == nil {
		tr = &tracked{quality: volumetric.QualityOff}
		t.tracks[ref] = tr
	}
	return tr
}

// Requested tells that a quality is about to be asked for. It supersedes an earlier request that has not shown.
// Requests for what is shown already, and for nothing, are not measured.
func (t *Tracker) Requested(ref volumetric.TrackRef, quality volumetric.Quality, now time.Time) {
	tr := t.track(ref)
	tr.pending = quality != volumetric.QualityOff && !(tr.known && tr.quality == quality)
	tr.wanted, tr.requested = quality, now
}

// Withdrawn tells that the quality is left to the server, or that the request failed.
func (t *Tracker) Withdrawn(ref volumetric.TrackRef) { t.track(ref).pending = false }

// Pending tells that a request has neither shown nor been superseded.
func (t *Tracker) Pending(ref volumetric.TrackRef) bool {
	tr := t.tracks[ref]
	return tr != nil && tr.pending
}

// Off tells that the tile is no longer sent: whatever is captured afterwards is a change.
func (t *Tracker) Off(ref volumetric.TrackRef, now time.Time) {
	tr := t.track(ref)
	tr.known, tr.off = false, now
}

// Decoded tells that a frame was decoded, and when it was captured. It returns the latency of the request that the
// frame is the first to fulfil, and whether the quality differs from that of the frame before.
func (t *Tracker) Decoded(ref volumetric.TrackRef, quality volumetric.Quality, number int64, capture,
	now time.Time) (latency time.Duration, fulfilled, switched bool) {
	tr := t.track(ref)
	// What was under way when the tile was switched off says nothing about what is sent now.
	if !tr.off.IsZero() && !capture.After(tr.off) {
		return 0, false, false
	}
	if tr.pending && tr.wanted == quality {
		tr.pending = false
		latency, fulfilled = now.Sub(tr.requested), true
	}
	// Frames that are decoded after newer ones say nothing about what is sent now; a number far below is a publication
	// that began anew.
	if tr.known && number <= tr.number && number > tr.number-recent {
		return latency, fulfilled, false
	}
	switched = tr.known && tr.quality != quality
	tr.known, tr.number, tr.quality, tr.decoded = true, number, quality, now
	return latency, fulfilled, switched
}

// Current is the quality of the newest frame, if one was decoded since a time.
func (t *Tracker) Current(ref volumetric.TrackRef, since time.Time) (volumetric.Quality, bool) {
	tr := t.tracks[ref]
	if tr == nil || !tr.known || tr.decoded.Before(since) {
		return volumetric.QualityOff, false
	}
	return tr.quality, true
}

// recent is how far the number of a frame may lie behind the newest: frames are repaired for a quarter of a second, at
// up to 120 per second.
const recent = 32
