package picture

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// packetBytes is the size of an RTP payload, as large as a packet of payload v1.
const packetBytes = 1160

// Source has the encoded frames of one quality. A Source is owned by the goroutine of Player.Run.
type Source interface {
	// Next returns the next frame. With key, the next frame is a key frame.
	Next(key bool) Frame
}

// Quality is one quality of a picture that is published.
type Quality struct {
	volumetric.QualityLevel
	Source Source
}

// Sink accepts the packets of frames. *client.Publisher implements it.
type Sink interface {
	Wanted(tile int, quality volumetric.Quality) bool
	WritePackets(tile int, quality volumetric.Quality, capture time.Time, payloads [][]byte) (taken bool, err error)
}

// Counts are the frames of all qualities.
type Counts struct {
	// Sent frames were handed over. KeyFrames of them are key frames.
	Sent, KeyFrames int64
	// Unwanted frames were not taken, because no receiver takes the quality or the uplink cannot carry the quality.
	// Unsent frames were ready while there was no connection.
	Unwanted, Unsent int64
}

// Player publishes a picture.
type Player struct {
	description volumetric.Publication
	tracks      []*track

	sent, keyFrames, unwanted, unsent atomic.Int64
}

// track is one quality in progress. Run owns all fields except wantKey.
type track struct {
	source    Source
	payloader rtp.Payloader
	interval  time.Duration
	due       time.Time
	// wantKey is set if the next frame must be a key frame. running is cleared while the quality is not wanted.
	wantKey atomic.Bool
	running bool
}

// NewPlayer returns a player of qualities in ascending order, with the description of the publication. Each quality
// needs a frame rate.
func NewPlayer(name, mimeType string, source volumetric.PictureSource, qualities []Quality) *Player {
	p := &Player{description: volumetric.Publication{
		Name: name, Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives,
		Codec:   volumetric.Codec{MIMEType: mimeType, ClockRate: 90000},
		Tiles:   []volumetric.Tile{{Box: volumetric.DefaultPanel(source)}},
		Picture: &volumetric.Picture{Source: source},
	}}
	for _, q := range qualities {
		p.description.Qualities = append(p.description.Qualities, q.QualityLevel)
		p.description.FrameRate = max(p.description.FrameRate, q.FrameRate)
		p.tracks = append(p.tracks, &track{
			source: q.Source, payloader: payloader(mimeType),
			interval: time.Duration(float64(time.Second) / q.FrameRate),
		})
	}
	return p
}

// NewRecordingPlayer returns a player of recordings of one codec, which repeats them. After a request for a key frame a
// recording continues with its next key frame.
func NewRecordingPlayer(name string, source volumetric.PictureSource, recordings []*Recording) *Player {
	var qualities []Quality
	for _, r := range recordings {
		level := volumetric.QualityLevel{
			Bitrate: r.Bitrate(), Width: r.Width, Height: r.Height, FrameRate: r.FrameRate,
		}
		qualities = append(qualities, Quality{level, &loop{recording: r}})
	}
	return NewPlayer(name, recordings[0].MIMEType, source, qualities)
}

// payloader returns the packetisation of a codec: RFC 6184 for H.264, else RFC 7741.
func payloader(mimeType string) rtp.Payloader {
	if mimeType == volumetric.MIMEH264 {
		return &codecs.H264Payloader{}
	}
	return &codecs.VP8Payloader{EnablePictureID: true}
}

// loop is the source of a recording.
type loop struct {
	recording *Recording
	next      int
}

// Next implements Source.
func (l *loop) Next(key bool) Frame {
	frames := l.recording.Frames
	for key && !frames[l.next].Key {
		l.next = (l.next + 1) % len(frames) // the first frame is a key frame
	}
	frame := frames[l.next]
	l.next = (l.next + 1) % len(frames)
	return frame
}

// Publication returns the description of the publication. The panel is the default of the source.
func (p *Player) Publication() volumetric.Publication { return p.description }

// WantKeyFrame requests that the next frame of a quality is a key frame. WantKeyFrame is safe for concurrent use and
// ignores qualities that do not exist.
func (p *Player) WantKeyFrame(quality volumetric.Quality) {
	if quality >= 0 && int(quality) < len(p.tracks) {
		p.tracks[quality].wantKey.Store(true)
	}
}

// Counts returns the counts so far. Counts is safe for concurrent use.
func (p *Player) Counts() Counts {
	return Counts{p.sent.Load(), p.keyFrames.Load(), p.unwanted.Load(), p.unsent.Load()}
}

// maxLag is the largest backlog. A publisher with a larger backlog was suspended, and continues from the present time.
const maxLag = 500 * time.Millisecond

// Run publishes until the context ends, which is not an error, or until the sink returns another error than
// client.ErrNotConnected.
func (p *Player) Run(ctx context.Context, sink Sink) error {
	clock := capture.SystemClock{}
	begin := clock.Now()
	for _, t := range p.tracks {
		t.due = begin
	}
	for {
		next := 0
		for q, t := range p.tracks {
			if t.due.Before(p.tracks[next].due) {
				next = q
			}
		}
		t := p.tracks[next]
		if clock.Wait(ctx, t.due) != nil {
			return nil
		}
		if now := clock.Now(); now.Sub(t.due) > maxLag {
			t.due = now
		}
		at := t.due
		t.due = t.due.Add(t.interval)
		if err := p.write(sink, volumetric.Quality(next), at); err != nil {
			return err
		}
	}
}

// write sends the next frame of a quality. A frame that was not sent is missing in the references of the next one, so
// that a key frame follows.
func (p *Player) write(sink Sink, quality volumetric.Quality, at time.Time) error {
	t := p.tracks[quality]
	if !sink.Wanted(0, quality) {
		t.running = false
		p.unwanted.Add(1)
		return nil
	}
	frame := t.source.Next(t.wantKey.Swap(false) || !t.running)
	payloads := t.payloader.Payload(packetBytes, frame.Data)
	if len(payloads) == 0 {
		return nil
	}
	taken, err := sink.WritePackets(0, quality, at, payloads)
	t.running = taken
	switch {
	case taken:
		p.sent.Add(1)
		if frame.Key {
			p.keyFrames.Add(1)
		}
	case err == nil:
		p.unwanted.Add(1)
	case errors.Is(err, client.ErrNotConnected):
		p.unsent.Add(1)
	default:
		return err
	}
	return nil
}
