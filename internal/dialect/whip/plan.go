package whip

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// names are the names of an encoder's publications: of its video and of its sound, as pages name their own.
type names struct{ video, sound string }

// sources has the names by the source of the picture.
var sources = map[volumetric.PictureSource]names{
	volumetric.SourceCamera: {"webcam", "voice"},
	volumetric.SourceScreen: {"screen", "screen-sound"},
}

// plan is the reading of an offer.
type plan struct {
	// offer is the offer with the codecs that the server accepts.
	offer *description.Description
	// publications are those of an encoder.
	publications []volumetric.Publication
	// accepts has the media types that a player accepts.
	accepts []string
}

// planPublishing reads the offer of an encoder with a source of its picture.
func planPublishing(text string, source volumetric.PictureSource) (*plan, *problem) {
	p, refused := parse(text, description.DirectionSendOnly)
	if refused != nil {
		return nil, refused
	}
	for i := range p.offer.Lines {
		l := &p.offer.Lines[i]
		if l.Rejected || l.Kind == description.KindData {
			continue
		}
		// A track has one codec, so the answer selects the first.
		l.Codecs = l.Codecs[:1]
		l.Layers = ascending(l.Layers)
		publication, err := publicationOf(l, source)
		if err != nil {
			return nil, err
		}
		p.publications = append(p.publications, publication)
	}
	return p, nil
}

// planPlaying reads the offer of a player.
func planPlaying(text string) (*plan, *problem) {
	p, refused := parse(text, description.DirectionRecvOnly)
	if refused != nil {
		return nil, refused
	}
	for i := range p.offer.Lines {
		for _, c := range p.offer.Lines[i].Codecs {
			p.accepts = append(p.accepts, c.MIMEType)
		}
	}
	return p, nil
}

// parse parses an offer and selects the lines and codecs that the server accepts. want is the direction of the client:
// lines of both directions count as lines of this direction.
func parse(text string, want description.Direction) (*plan, *problem) {
	offer, err := description.Parse(text)
	if err != nil {
		return nil, malformed(err.Error())
	}
	counts := make(map[volumetric.Kind]int)
	for i := range offer.Lines {
		l := &offer.Lines[i]
		if l.Rejected || l.Kind == description.KindData {
			continue
		}
		if l.Direction != want && l.Direction != description.DirectionSendRecv {
			return nil, unacceptable("line %q is %s, expected %s", l.MID, l.Direction, want)
		}
		l.Direction = want
		if counts[l.Kind]++; counts[l.Kind] > 1 {
			return nil, unacceptable("the offer has several lines of %s, expected one", l.Kind)
		}
		if refused := selectCodecs(l); refused != nil {
			return nil, refused
		}
		if want == description.DirectionRecvOnly {
			l.Layers = nil
		}
	}
	if len(counts) == 0 {
		return nil, unacceptable("the offer has neither video nor sound")
	}
	if _, err := description.AnswerAsForwarder(offer, nil); err != nil {
		return nil, malformed(err.Error())
	}
	return &plan{offer: offer}, nil
}

// takes describes the codecs that the server accepts, by kind.
var takes = map[volumetric.Kind]string{
	volumetric.KindVideo: "VP8 or H264 with packetization-mode=1",
	volumetric.KindAudio: "opus/48000/2",
}

// selectCodecs leaves a line only the codecs that ordinary clients of a room decode, in the order of the offer. Each
// occurs once: of H264 the constrained baseline profile if it is offered, otherwise the first.
func selectCodecs(l *description.Line) *problem {
	known, _ := description.Offered(l.Kind)
	var selected []description.Codec
	for _, c := range l.Codecs {
		i := slices.IndexFunc(known, func(k description.Codec) bool { return k.SameFormat(&c) })
		if i < 0 || !ordinary(known[i].MIMEType) {
			continue
		}
		c.MIMEType = known[i].MIMEType
		at := slices.IndexFunc(selected, func(s description.Codec) bool { return s.MIMEType == c.MIMEType })
		switch {
		case at < 0:
			selected = append(selected, c)
		case known[i].Decodes(&c) && !known[i].Decodes(&selected[at]):
			selected[at] = c
		}
	}
	if len(selected) == 0 {
		var names []string
		for _, c := range l.Codecs {
			_, name, _ := strings.Cut(c.MIMEType, "/")
			names = append(names, name)
		}
		return unacceptable("the %s codecs of the offer are %.200q, expected %s", l.Kind, strings.Join(names, ", "),
			takes[l.Kind])
	}
	l.Codecs = selected
	return nil
}

// ordinary reports whether encoders and players other than this project's know a media type.
func ordinary(mimeType string) bool {
	return slices.Contains([]string{volumetric.MIMEVP8, volumetric.MIMEH264, volumetric.MIMEOpus}, mimeType)
}

// publicationOf returns the publication that an encoder sends on a line.
func publicationOf(l *description.Line, source volumetric.PictureSource) (volumetric.Publication, *problem) {
	codec := l.Codecs[0]
	p := volumetric.Publication{
		Name: sources[source].sound, Kind: l.Kind, Mode: volumetric.ModeAlternatives,
		Codec:     volumetric.Codec{MIMEType: codec.MIMEType, ClockRate: codec.ClockRate, Channels: codec.Channels},
		Tiles:     make([]volumetric.Tile, 1),
		Qualities: make([]volumetric.QualityLevel, max(1, len(l.Layers))),
	}
	named := func(uri string) bool {
		return slices.ContainsFunc(l.Extensions, func(e description.Extension) bool { return e.URI == uri })
	}
	switch {
	case l.Kind == volumetric.KindAudio && len(l.Layers) > 0:
		return p, unacceptable("line %q has simulcast, which is for video only", l.MID)
	case len(l.Layers) > 0 && !named(description.LayerExtension):
		return p, unacceptable("line %q has simulcast without the header extension %s", l.MID,
			description.LayerExtension)
	case len(l.Layers) == 0 && l.Streams.SSRC == 0 && !named(description.MIDExtension):
		return p, unacceptable("line %q has neither a=ssrc nor the header extension %s", l.MID,
			description.MIDExtension)
	}
	if l.Kind == volumetric.KindAudio {
		return p, nil
	}
	p.Name, p.Picture = sources[source].video, &volumetric.Picture{Source: source}
	p.Tiles[0].Box = volumetric.DefaultPanel(source)
	for q, layer := range l.Layers {
		level := volumetric.QualityLevel{Name: layer.ID, Bitrate: volumetric.Bitrate(layer.MaxBitrate)}
		if w, h := layer.MaxWidth, layer.MaxHeight; min(w, h) > 0 && max(w, h) <= volumetric.MaxPictureSide {
			level.Width, level.Height = w, h
		}
		p.Qualities[q] = level
	}
	return p, nil
}

// layerNames are usual ids of encodings, from the worst to the best.
var layerNames = [][]string{{"q", "h", "f"}, {"l", "m", "h"}, {"low", "mid", "high"}, {"low", "medium", "high"}}

// ascending returns encodings from the worst to the best: by their limits if all have limits, by usual ids, otherwise
// in the reverse order of the offer, in which the preferred encoding is first (RFC 8853 section 5.2).
func ascending(layers []description.Layer) []description.Layer {
	sorted := slices.Clone(layers)
	if rank := rankOf(layers); rank != nil {
		slices.SortStableFunc(sorted, func(a, b description.Layer) int { return cmp.Compare(rank(a), rank(b)) })
	} else {
		slices.Reverse(sorted)
	}
	return sorted
}

// rankOf returns a function that ranks encodings, nil if only the order of the offer is known.
func rankOf(layers []description.Layer) func(description.Layer) int {
	ranks := []func(description.Layer) int{
		func(l description.Layer) int {
			return min(l.MaxWidth, math.MaxInt16) * min(l.MaxHeight, math.MaxInt16)
		},
		func(l description.Layer) int { return l.MaxBitrate },
	}
	for _, names := range layerNames {
		ranks = append(ranks, func(l description.Layer) int { return 1 + slices.Index(names, strings.ToLower(l.ID)) })
	}
	for _, rank := range ranks {
		seen := make(map[int]bool)
		for _, l := range layers {
			if n := rank(l); n > 0 {
				seen[n] = true
			}
		}
		if len(seen) == len(layers) {
			return rank
		}
	}
	return nil
}

// problem is the reason why a request is refused.
type problem struct {
	status int
	code   signal.Code
	detail string
}

func malformed(detail string) *problem {
	return &problem{http.StatusBadRequest, signal.CodeInvalidSDP, detail}
}

func unacceptable(format string, arguments ...any) *problem {
	return &problem{http.StatusNotAcceptable, signal.CodeInvalidSDP, fmt.Sprintf(format, arguments...)}
}
