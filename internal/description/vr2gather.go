package description

import (
	"fmt"
	"slices"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// The payload types of VR2Gather's peers, which are fixed in the peers.
const (
	PayloadTypeVR2GatherVideo = 5
	PayloadTypeVR2GatherAudio = 6
)

// vr2GatherClockRate is the RTP clock rate of both kinds, in Hz.
const vr2GatherClockRate = 90000

// ForVR2Gather converts an offer of this package to one for VR2Gather's peers: each line has the one format of its
// kind, without retransmissions and requests for them, and transport-wide numbers are the only header extension.
// streams has, by mid, the identifiers of the lines on which the offerer sends, as in Line.Stream; the default is the
// mid. Candidates for which keep returns false are removed.
func ForVR2Gather(offer string, streams map[string]string, keep func(candidate string) bool) (string, error) {
	d, err := Parse(offer)
	if err != nil {
		return "", err
	}
	d.Transport.Candidates = slices.DeleteFunc(slices.Clone(d.Transport.Candidates),
		func(c string) bool { return !keep(c) })
	for i := range d.Lines {
		l := &d.Lines[i]
		if l.Rejected {
			continue
		}
		l.Codecs, l.Extensions, l.CongestionFeedback = []Codec{vr2GatherCodec(l.Kind)}, extensions, false
		l.Streams.Retransmission = 0
		if l.Direction.Sends() {
			if l.Stream = streams[l.MID]; l.Stream == "" {
				l.Stream = l.MID + " " + l.MID
			}
		}
	}
	return d.Marshal(), nil
}

// vr2GatherCodec returns the format of a kind of line.
func vr2GatherCodec(kind volumetric.Kind) Codec {
	c := Codec{
		MIMEType: string(kind) + "/pcm", ClockRate: vr2GatherClockRate, Feedback: soundFeedback,
		PayloadType: PayloadTypeVR2GatherVideo,
	}
	if kind == volumetric.KindAudio {
		c.PayloadType = PayloadTypeVR2GatherAudio
	}
	return c
}

// FromVR2Gather converts the answer of a VR2Gather peer to an offer of ForVR2Gather to an answer to the original offer.
// streams has, by mid, the peer's identifiers of the streams that it sends, as in Line.Stream. The error, which wraps
// ErrDescription, reports a line of another format, or without transport-wide numbers: the headers would not have the
// length that such peers assume.
func FromVR2Gather(answer string) (text string, streams map[string]string, err error) {
	d, err := Parse(answer)
	if err != nil {
		return "", nil, err
	}
	streams = make(map[string]string)
	for i := range d.Lines {
		l := &d.Lines[i]
		if l.Rejected {
			continue
		}
		if err := checkVR2Gather(l); err != nil {
			return "", nil, fmt.Errorf("%w: line %d (mid %q): %w", ErrDescription, i, l.MID, err)
		}
		if l.Direction.Sends() && l.Streams.SSRC != 0 {
			streams[l.MID] = l.Stream
		}
		l.Codecs, l.Extensions, l.CongestionFeedback = []Codec{carrier(l.Kind)}, extensions, false
		l.Streams.Retransmission = 0
	}
	return d.Marshal(), streams, nil
}

func checkVR2Gather(l *Line) error {
	want := vr2GatherCodec(l.Kind)
	known := func(c Codec) bool { return c.PayloadType == want.PayloadType && c.same(&want) }
	if !slices.ContainsFunc(l.Codecs, known) {
		return fmt.Errorf("no %s/%d as payload type %d", want.MIMEType, want.ClockRate, want.PayloadType)
	}
	if !slices.Contains(l.Extensions, extensions[0]) {
		return fmt.Errorf("no header extension %d for transport-wide numbers", extensions[0].ID)
	}
	return nil
}

// carrier returns the format, without retransmissions, that represents VR2Gather's on a line of the kind.
func carrier(kind volumetric.Kind) Codec {
	known, mimeType := videoCodecs, volumetric.MIMEVolumetric
	if kind == volumetric.KindAudio {
		known, mimeType = audioCodecs, volumetric.MIMEOpaque
	}
	c := known[slices.IndexFunc(known, func(c Codec) bool { return c.MIMEType == mimeType })]
	c.Retransmission = 0
	return c
}
