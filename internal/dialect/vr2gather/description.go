package vr2gather

import (
	"fmt"
	"slices"
	"strings"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// The payload types of VR2Gather peers, which are fixed in the peers.
const (
	payloadTypeVideo = 5
	payloadTypeAudio = 6
)

// clockRate is the RTP clock rate of both kinds, in Hz.
const clockRate = 90000

// toPeer converts an offer of the server to an offer for VR2Gather peers: each line has the only format of its kind,
// without retransmissions and NACK, and transport-wide sequence numbers are the only header extension. streams has, by
// mid, the identifiers of the lines on which the server sends, as in description.Line.Stream; the default is the mid.
// Candidates for which keep returns false are removed.
func toPeer(offer string, streams map[string]string, keep func(candidate string) bool) (string, error) {
	d, err := description.Parse(offer)
	if err != nil {
		return "", err
	}
	refused := func(c string) bool { return !keep(c) }
	d.Transport.Candidates = slices.DeleteFunc(slices.Clone(d.Transport.Candidates), refused)
	for i := range d.Lines {
		l := &d.Lines[i]
		if l.Rejected {
			continue
		}
		_, extensions := description.Offered(l.Kind)
		l.Codecs, l.Extensions, l.CongestionFeedback = []description.Codec{codecOf(l.Kind)}, extensions, false
		l.Streams.Retransmission = 0
		if l.Direction.Sends() {
			if l.Stream = streams[l.MID]; l.Stream == "" {
				l.Stream = l.MID + " " + l.MID
			}
		}
	}
	return d.Marshal(), nil
}

// codecOf returns the format of a kind of line.
func codecOf(kind volumetric.Kind) description.Codec {
	c := description.Codec{
		MIMEType: string(kind) + "/pcm", ClockRate: clockRate, Feedback: []string{"transport-cc"},
		PayloadType: payloadTypeVideo,
	}
	if kind == volumetric.KindAudio {
		c.PayloadType = payloadTypeAudio
	}
	return c
}

// fromPeer converts a VR2Gather peer's answer to an offer of toPeer into an answer to the original offer. streams has,
// by mid, the peer's identifiers of its own streams, as in description.Line.Stream. The error wraps
// description.ErrDescription and reports a line with another format or without transport-wide sequence numbers: the RTP
// headers would not have the length that the peers assume.
func fromPeer(answer string) (text string, streams map[string]string, err error) {
	d, err := description.Parse(answer)
	if err != nil {
		return "", nil, err
	}
	streams = make(map[string]string)
	for i := range d.Lines {
		l := &d.Lines[i]
		if l.Rejected {
			continue
		}
		if err := checkLine(l); err != nil {
			return "", nil, fmt.Errorf("%w: line %d (mid %q): %w", description.ErrDescription, i, l.MID, err)
		}
		if l.Direction.Sends() && l.Streams.SSRC != 0 {
			streams[l.MID] = l.Stream
		}
		_, extensions := description.Offered(l.Kind)
		l.Codecs, l.Extensions, l.CongestionFeedback = []description.Codec{carrierOf(l.Kind)}, extensions, false
		l.Streams.Retransmission = 0
	}
	return d.Marshal(), streams, nil
}

// checkLine returns an error if a line of an answer lacks the format of its kind or transport-wide sequence numbers.
func checkLine(l *description.Line) error {
	want := codecOf(l.Kind)
	known := func(c description.Codec) bool {
		return c.PayloadType == want.PayloadType && strings.EqualFold(c.MIMEType, want.MIMEType) &&
			c.ClockRate == want.ClockRate && max(c.Channels, 1) == 1
	}
	if !slices.ContainsFunc(l.Codecs, known) {
		return fmt.Errorf("expected %s/%d with payload type %d", want.MIMEType, want.ClockRate, want.PayloadType)
	}
	_, extensions := description.Offered(volumetric.KindVideo)
	if !slices.Contains(l.Extensions, extensions[0]) {
		return fmt.Errorf("expected header extension %d for transport-wide sequence numbers", extensions[0].ID)
	}
	return nil
}

// carrierOf returns the server's format, without retransmissions, that replaces the peer's format on a line of the
// kind.
func carrierOf(kind volumetric.Kind) description.Codec {
	mimeType := volumetric.MIMEVolumetric
	if kind == volumetric.KindAudio {
		mimeType = volumetric.MIMEOpaque
	}
	offered, _ := description.Offered(kind)
	c := offered[slices.IndexFunc(offered, func(c description.Codec) bool { return c.MIMEType == mimeType })]
	c.Retransmission = 0
	return c
}
