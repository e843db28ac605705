package choice

import (
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Tracker measures the time from a request for a quality to the first decoded frame of that quality. Every method takes
// the current time; a Tracker reads no clock. The key is a tile, with quality volumetric.QualityOff, or in
// volumetric.ModeDescriptions one description of the tile.
type Tracker struct {
	tracks map[volumetric.TrackRef]*tracked
}

// tracked is the state of one tile or description.
type tracked struct {
	// known is set once a frame was decoded. number, quality and decoded describe the newest frame.
	known   bool
	number  int64
	quality volumetric.Quality
	decoded time.Time
	// off is the time at which the tile was switched off last.
	off time.Time
	// pending is set from a request until a frame of the quality wanted is decoded.
	pending   bool
	wanted    volumetric.Quality
	requested time.Time
}

// NewTracker returns an empty tracker.
func NewTracker() *Tracker { return &Tracker{tracks: make(map[volumetric.TrackRef]*tracked)} }

func (t *Tracker) track(ref volumetric.TrackRef) *tracked {
	tr := t.tracks[ref]
	if tr == nil {
		tr = &tracked{quality: volumetric.QualityOff}
		t.tracks[ref] = tr
	}
	return tr
}

// Requested records that a quality is about to be requested. Requested supersedes an earlier pending request. A request
// for the current quality or for QualityOff is not measured.
func (t *Tracker) Requested(ref volumetric.TrackRef, quality volumetric.Quality, now time.Time) {
	tr := t.track(ref)
	tr.pending = quality != volumetric.QualityOff && !(tr.known && tr.quality == quality)
	tr.wanted, tr.requested = quality, now
}

// Withdrawn cancels the pending request, because the server now decides the quality or because the request failed.
func (t *Tracker) Withdrawn(ref volumetric.TrackRef) { t.track(ref).pending = false }

// Pending reports whether a request is pending.
func (t *Tracker) Pending(ref volumetric.TrackRef) bool {
	tr := t.tracks[ref]
	return tr != nil && tr.pending
}

// Off records that the server stopped sending the tile. The first frame captured later is not counted as a switch.
func (t *Tracker) Off(ref volumetric.TrackRef, now time.Time) {
	tr := t.track(ref)
	tr.known, tr.off = false, now
}

// Decoded records a decoded frame and the capture time. If the frame is the first that fulfils the pending request,
// fulfilled is set and latency is the time since the request. switched reports whether the quality differs from that of
// the previous frame.
func (t *Tracker) Decoded(ref volumetric.TrackRef, quality volumetric.Quality, number int64, capture,
	now time.Time) (latency time.Duration, fulfilled, switched bool) {
	tr := t.track(ref)
	// A frame captured before the tile was switched off does not show what is sent now.
	if !tr.off.IsZero() && !capture.After(tr.off) {
		return 0, false, false
	}
	if tr.pending && tr.wanted == quality {
		tr.pending = false
		latency, fulfilled = now.Sub(tr.requested), true
	}
	// A frame that is decoded after a newer one does not show what is sent now. A number far below the newest belongs
	// to a publication that was restarted.
	if tr.known && number <= tr.number && number > tr.number-recent {
		return latency, fulfilled, false
	}
	switched = tr.known && tr.quality != quality
	tr.known, tr.number, tr.quality, tr.decoded = true, number, quality, now
	return latency, fulfilled, switched
}

// Current returns the quality of the newest frame, if it was decoded at or after since.
func (t *Tracker) Current(ref volumetric.TrackRef, since time.Time) (volumetric.Quality, bool) {
	tr := t.tracks[ref]
	if tr == nil || !tr.known || tr.decoded.Before(since) {
		return volumetric.QualityOff, false
	}
	return tr.quality, true
}

// recent is the largest distance of a late frame's number from the newest. Frames are repaired for 250 ms, which is 30
// frames at 120 per second.
const recent = 32
