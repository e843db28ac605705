package watch

import (
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/decode"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/present"
	"github.com/volsfu/volsfu/internal/peer/codecs"
	"github.com/volsfu/volsfu/internal/peer/opus"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// captured returns the capture time of a frame. If the publisher does not state the time, the arrival of the first
// packet is returned.
func captured(f *client.Frame) time.Time {
	if f.Capture.IsZero() {
		return f.First
	}
	return f.Capture
}

// frame takes a complete frame. A frame that is older than the one shown is not decoded.
func (v *viewer) frame(f *client.Frame) {
	tile := f.Track.TileRef
	if !v.received {
		v.received = true
		v.log.Info("first frame", "participant", tile.Participant, "publication", tile.Publication)
	}
	if player := v.player(tile.PublicationRef); player != nil && player.Passed(tile.Tile, f.Number, captured(f)) {
		v.book.Skipped(tile, 1)
		return
	}
	v.book.Skipped(tile, v.pool.Submit(v.part(f.Track), *f))
}

// result takes a decoded frame.
func (v *viewer) result(r *decode.Result) {
	f := &r.Frame
	tile := f.Track.TileRef
	if r.Err != nil {
		v.book.Failed(tile)
		v.undecodable(f, r.Err)
		return
	}
	v.time(r)
	decoded := v.session.ServerTime(r.Decoded)
	v.book.Decoded(tile, f.Number, f.Capture, decoded)
	latency, fulfilled, switched := v.requests.tracker.Decoded(v.part(f.Track), f.Track.Quality, f.Number, captured(f),
		decoded)
	if fulfilled {
		v.book.Changed(tile, latency)
	}
	if switched {
		v.book.Switched(tile)
	}
	if stage := v.stages[tile.Participant]; stage != nil {
		stage.Decoded(tile.Publication, present.Arrival{
			Tile:    tile.Tile,
			Quality: f.Track.Quality,
			Number:  f.Number,
			Capture: captured(f),
			First:   f.First,
			Decoded: decoded,
			Cloud:   r.Cloud,
		})
	}
}

// undecodable logs the first undecodable frame of each publication.
func (v *viewer) undecodable(f *client.Frame, err error) {
	name := f.Track.PublicationRef.String()
	if v.refused[name] {
		return
	}
	v.refused[name] = true
	v.log.Warn("frame cannot be decoded; further frames of the publication are only "+
		"counted", "publication", name, "error",
		codecs.Explain(f.Codec, err))
}

// packet takes a packet of a picture or of audio.
func (v *viewer) packet(p *client.Packet) {
	ref := p.Track.PublicationRef
	if publication := v.publications[ref]; isPicture(&publication) {
		v.picture(p)
		return
	}
	if !p.Codec.Is(volumetric.MIMEOpus) {
		return
	}
	v.book.Sound(ref, p.SequenceNumber, p.Arrival)
	if duration, err := opus.Duration(p.Payload); err == nil && !p.Capture.IsZero() {
		if stage := v.stages[ref.Participant]; stage != nil {
			stage.Heard(ref.Publication, p.Capture, duration, p.Arrival)
		}
	}
	v.record(ref, p)
}

// record records the first audio publication that is received.
func (v *viewer) record(ref volumetric.PublicationRef, p *client.Packet) {
	if v.config.sound == "" {
		return
	}
	if v.recorder == nil {
		var err error
		if v.recorder, err = opus.NewRecorder(v.config.sound, p.Codec.Channels); err != nil {
			v.log.Warn("audio is not saved", "error", err)
			v.config.sound = ""
			return
		}
		v.heard = ref
		v.log.Info("saving audio", "participant", ref.Participant, "publication", ref.Publication)
	}
	if ref != v.heard {
		return
	}
	if err := v.recorder.Write(&p.Packet); err != nil {
		v.log.Warn("audio is no longer saved", "error", err)
		v.config.sound = ""
	}
}
