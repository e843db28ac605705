package picture

import (
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// keyFrameInterval is the minimum time between two requests for a key frame, the interval in which the server asks a
// publisher at most once.
const keyFrameInterval = 500 * time.Millisecond

// Reception counts the frames of one received picture. A Reception takes explicit times and is owned by one goroutine.
type Reception struct {
	ReceptionCounts
	assembler *Assembler
	// shown is the time of the last decodable frame since the picture was off, zero without one. off is set while the
	// server sends nothing. asked is the time of the last request for a key frame.
	shown, asked time.Time
	off          bool
}

// ReceptionCounts are the counts of a reception.
type ReceptionCounts struct {
	// Frames are the complete frames, Undecodable those of them that lack a frame on which they depend, and KeyFrames
	// those that depend on no other.
	Frames, Undecodable, KeyFrames int64
	// Bytes is the sum of the payloads of frames.
	Bytes int64
	// First and Last are the times of the first and the last decodable frame. LongestGap is the longest time between
	// two decodable frames while the picture was on.
	First, Last time.Time
	LongestGap  time.Duration
	// Quality is the present quality, volumetric.QualityOff for off. Switches counts the changes between two qualities.
	Quality  volumetric.Quality
	Switches int64
}

// NewReception returns a reception of a codec. A missing packet is awaited until the deadline.
func NewReception(mimeType string, deadline time.Duration) *Reception {
	return &Reception{
		ReceptionCounts: ReceptionCounts{Quality: volumetric.QualityOff}, assembler: NewAssembler(mimeType, deadline),
	}
}

// Push adds a packet and returns the frames that are complete with it.
func (r *Reception) Push(p *rtp.Packet, at time.Time) []Received {
	frames := r.assembler.Push(p, at)
	for i := range frames {
		r.count(&frames[i])
	}
	return frames
}

// count counts a frame.
func (r *Reception) count(f *Received) {
	r.Frames++
	r.Bytes += int64(f.Bytes)
	if f.Key {
		r.KeyFrames++
	}
	if !f.Decodable {
		r.Undecodable++
		return
	}
	if r.First.IsZero() {
		r.First = f.Complete
	}
	r.Last = f.Complete
	if r.off {
		return // the frame was under way when the picture was switched off
	}
	if !r.shown.IsZero() {
		r.LongestGap = max(r.LongestGap, f.Complete.Sub(r.shown))
	}
	r.shown = f.Complete
}

// Sending records the server's message about the quality that is sent.
func (r *Reception) Sending(quality volumetric.Quality) {
	if quality != volumetric.QualityOff && r.Quality != volumetric.QualityOff && quality != r.Quality {
		r.Switches++
	}
	r.Quality = quality
	if r.off = quality == volumetric.QualityOff; r.off {
		r.shown = time.Time{}
	}
}

// End closes the last gap of a picture that is on.
func (r *Reception) End(at time.Time) {
	if !r.shown.IsZero() {
		r.LongestGap = max(r.LongestGap, at.Sub(r.shown))
	}
}

// WantsKeyFrame reports whether to ask for a key frame, because frames are not decodable, and records the request.
func (r *Reception) WantsKeyFrame(now time.Time) bool {
	if !r.assembler.Broken() || now.Sub(r.asked) < keyFrameInterval {
		return false
	}
	r.asked = now
	return true
}
