package watch

import (
	"cmp"
	"slices"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/summary"
	"github.com/volsfu/volsfu/internal/peer/picture"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/switching"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// isPicture reports whether a publication is H264 or VP8, whose frames are counted and not decoded.
func isPicture(p *volumetric.Publication) bool { return switching.NeedsKey(p.Codec.MIMEType) }

// picture takes a packet of a picture, and asks for a key frame if frames depend on a lost one.
func (v *viewer) picture(p *client.Packet) {
	ref := p.Track.PublicationRef
	r := v.pictures[ref]
	if r == nil {
		r = picture.NewReception(p.Codec.MIMEType, v.config.deadline)
		r.Sending(v.pictureQuality[ref])
		v.pictures[ref] = r
		v.log.Info("first packet of a picture", "participant", ref.Participant, "publication", ref.Publication)
	}
	r.Push(&p.Packet, p.Arrival)
	if r.WantsKeyFrame(p.Arrival) {
		if err := v.session.RequestKeyFrame(p.Track.TileRef); err != nil {
			v.log.Warn("a key frame cannot be requested", "publication", ref, "error", err)
		}
	}
}

// pictureSending records the quality of a picture that the server sends.
func (v *viewer) pictureSending(ref volumetric.PublicationRef, quality volumetric.Quality) {
	v.pictureQuality[ref] = quality
	if r := v.pictures[ref]; r != nil {
		r.Sending(quality)
	}
}

// pictureFigures returns the counts of all pictures at the end, in the order of their names.
func (v *viewer) pictureFigures(end time.Time) []summary.Picture {
	figures := []summary.Picture{}
	for ref, r := range v.pictures {
		if _, present := v.publications[ref]; present {
			r.End(end)
		}
		f := summary.Picture{
			Participant: ref.Participant, Publication: ref.Publication, Quality: int(r.Quality), Frames: r.Frames,
			KeyFrames: r.KeyFrames, Undecodable: r.Undecodable, Switches: r.Switches,
			LongestGap: float64(r.LongestGap.Microseconds()) / 1000,
		}
		if seconds := r.Last.Sub(r.First).Seconds(); seconds > 0 {
			f.FPS = float64(r.Frames-r.Undecodable-1) / seconds
			f.Bitrate = int64(8 * float64(r.Bytes) / seconds)
		}
		figures = append(figures, f)
	}
	slices.SortFunc(figures, func(a, b summary.Picture) int {
		return cmp.Or(cmp.Compare(a.Participant, b.Participant), cmp.Compare(a.Publication, b.Publication))
	})
	return figures
}
