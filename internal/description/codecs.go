package description

import (
	"slices"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// The offered payload types. Retransmissions of each have the next number; Opus has none.
const (
	payloadTypeVolumetric = 96
	payloadTypeOpaque     = 98
	payloadTypeVP8        = 100
	payloadTypeH264       = 102
	payloadTypeOpus       = 111
	// payloadTypeOpaqueSound is the payload type of sound in other formats than Opus, also without retransmissions.
	payloadTypeOpaqueSound = 113
)

// TransportWideCC is the URI of the header extension that numbers the packets of a transport, for congestion control
// feedback.
const TransportWideCC = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"

const transportWideCCID = 1

// The offer of an endpoint. These values are constant.
var (
	videoFeedback = []string{"nack", "nack pli", "ccm fir", "transport-cc"}
	// browserFeedback is that of the codecs of browsers. rrtr stands for reference times (RFC 3611 section 4.4), as in
	// libwebrtc.
	browserFeedback = append(slices.Clip(videoFeedback), "rrtr")
	soundFeedback   = []string{"transport-cc"}
	videoCodecs     = []Codec{
		videoCodec(volumetric.MIMEVolumetric, payloadTypeVolumetric, "", videoFeedback),
		videoCodec(volumetric.MIMEOpaque, payloadTypeOpaque, "", videoFeedback),
		videoCodec(volumetric.MIMEVP8, payloadTypeVP8, "", browserFeedback),
		videoCodec(volumetric.MIMEH264, payloadTypeH264,
			"level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f", browserFeedback),
	}
	audioCodecs = []Codec{{
		MIMEType: volumetric.MIMEOpus, ClockRate: 48000, Channels: 2, Format: "minptime=10;useinbandfec=1",
		Feedback: soundFeedback, PayloadType: payloadTypeOpus,
	}, {
		MIMEType: volumetric.MIMEOpaque, ClockRate: 48000, Feedback: soundFeedback, PayloadType: payloadTypeOpaqueSound,
	}}
	extensions = []Extension{{ID: transportWideCCID, URI: TransportWideCC}}
)

func videoCodec(mimeType string, payloadType uint8, format string, feedback []string) Codec {
	return Codec{
		MIMEType: mimeType, ClockRate: 90000, Format: format, Feedback: feedback, PayloadType: payloadType,
		Retransmission: payloadType + 1,
	}
}

// Offered returns the codecs and header extensions that an endpoint offers on a line of the kind, and accepts in offers
// of others. All lines share them: callers must not change them.
func Offered(kind volumetric.Kind) ([]Codec, []Extension) {
	switch kind {
	case volumetric.KindVideo:
		return videoCodecs, extensions
	case volumetric.KindAudio:
		return audioCodecs, extensions
	default:
		return nil, nil
	}
}

// same reports whether two codecs have the same media type, clock rate and number of channels (RFC 8866 section 6.6:
// default 1).
func (c *Codec) same(other *Codec) bool {
	return strings.EqualFold(c.MIMEType, other.MIMEType) && c.ClockRate == other.ClockRate &&
		max(c.Channels, 1) == max(other.Channels, 1)
}

// Decodes reports whether one codec decodes the output of the other: both have the same format, and H264 has the same
// profile.
func (c *Codec) Decodes(other *Codec) bool {
	return c.SameFormat(other) &&
		(!c.isH264() || h264Profile(c.Format) == h264Profile(other.Format))
}

// SameFormat reports whether two codecs have the same packets: both are the same, and H264 has the same packetization
// mode.
func (c *Codec) SameFormat(other *Codec) bool {
	return c.same(other) && (!c.isH264() || packetizationMode(c.Format) == packetizationMode(other.Format))
}

func (c *Codec) isH264() bool { return strings.EqualFold(c.MIMEType, volumetric.MIMEH264) }

// packetizationMode returns that of H264, default 0 (RFC 6184 section 8.1).
func packetizationMode(format string) string {
	if mode := parameter(format, "packetization-mode"); mode != "" {
		return mode
	}
	return "0"
}

// h264Profile returns the profile of H264 and its constraints: the first two of the three bytes of profile-level-id.
// The level may differ by direction. The default is the Baseline profile (RFC 6184 section 8.1).
func h264Profile(format string) string {
	id := strings.ToLower(parameter(format, "profile-level-id"))
	if len(id) != 6 {
		return "4200"
	}
	return id[:4]
}

// parameter returns the value of a parameter of a=fmtp, or "".
func parameter(format, name string) string {
	for field := range strings.SplitSeq(format, ";") {
		if key, value, ok := strings.Cut(strings.TrimSpace(field), "="); ok && strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

// associated returns the payload type that an RTX payload type retransmits (RFC 4588).
func associated(format string) (payloadType uint8, ok bool) {
	return parsePayloadType(parameter(format, "apt"))
}

// parsePayloadType parses an RTP payload type, which has 7 bits.
func parsePayloadType(text string) (payloadType uint8, ok bool) {
	number, err := strconv.ParseUint(text, 10, 7)
	return uint8(number), err == nil
}
