package description

import (
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// The payload types that are offered. Retransmissions of each have the number after it; Opus has none.
const (
	payloadTypeVolumetric = 96
	payloadTypeOpaque     = 98
	payloadTypeVP8        = 100
	payloadTypeH264       = 102
	payloadTypeOpus       = 111
	// payloadTypeOpaqueSound is that of sound in other formats than Opus. It has no retransmissions either.
	payloadTypeOpaqueSound = 113
)

// TransportWideCC is the header extension that numbers the packets of a transport, for feedback about its congestion.
const TransportWideCC = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"

const transportWideCCID = 1

// What an endpoint offers. Nothing changes these.
var (
	videoFeedback = []string{"nack", "nack pli", "ccm fir", "transport-cc"}
	soundFeedback = []string{"transport-cc"}
	videoCodecs   = []Codec{
		videoCodec(volumetric.MIMEVolumetric, payloadTypeVolumetric, ""),
		videoCodec(volumetric.MIMEOpaque, payloadTypeOpaque, ""),
		videoCodec(volumetric.MIMEVP8, payloadTypeVP8, ""),
		videoCodec(volumetric.MIMEH264, payloadTypeH264, "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f"),
	}
	audioCodecs = []Codec{{
		MIMEType: volumetric.MIMEOpus, ClockRate: 48000, Channels: 2, Format: "minptime=10;useinbandfec=1",
		Feedback: soundFeedback, PayloadType: payloadTypeOpus,
	}, {
		MIMEType: volumetric.MIMEOpaque, ClockRate: 48000, Feedback: soundFeedback, PayloadType: payloadTypeOpaqueSound,
	}}
	extensions = []Extension{{ID: transportWideCCID, URI: TransportWideCC}}
)

func videoCodec(mimeType string, payloadType uint8, format string) Codec {
	return Codec{
		MIMEType: mimeType, ClockRate: 90000, Format: format, Feedback: videoFeedback, PayloadType: payloadType, Retransmission: payloadType + 1,
	}
}

// Offered gives the codecs and header extensions that an endpoint offers on a line of the kind, and knows in offers of others. All lines share
// them: they must not be changed.
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

// same tells whether two codecs have the same media type, clock rate and number of channels (RFC 8866 section 6.6: one where none is named).
func (c *Codec) same(other *Codec) bool {
	return strings.EqualFold(c.MIMEType, other.MIMEType) && c.ClockRate == other.ClockRate && max(c.Channels, 1) == max(other.Channels, 1)
}

// fits tells whether what one codec encodes the other decodes: besides being the same, H264 has the same packetization mode and profile.
func (c *Codec) fits(other *Codec) bool {
	if !c.same(other) {
		return false
	}
	if !strings.EqualFold(c.MIMEType, volumetric.MIMEH264) {
		return true
	}
	return packetizationMode(c.Format) == packetizationMode(other.Format) && h264Profile(c.Format) == h264Profile(other.Format)
}

// packetizationMode is that of H264, 0 where it is not named (RFC 6184 section 8.1).
func packetizationMode(format string) string {
	if mode := parameter(format, "packetization-mode"); mode != "" {
		return mode
	}
	return "0"
}

// h264Profile is the profile of H264 and its constraints: the first two of the three bytes of profile-level-id. The level differs by direction.
// Where there is none, it is the Baseline profile (RFC 6184 section 8.1).
func h264Profile(format string) string {
	id := strings.ToLower(parameter(format, "profile-level-id"))
	if len(id) != 6 {
		return "4200"
	}
	return id[:4]
}

// parameter is the value of a parameter of a=fmtp, empty where it is missing.
func parameter(format, name string) string {
	for field := range strings.SplitSeq(format, ";") {
		if key, value, ok := strings.Cut(strings.TrimSpace(field), "="); ok && strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

// associated is the payload type that an RTX payload type repeats (RFC 4588).
func associated(format string) (payloadType uint8, ok bool) {
	return parsePayloadType(parameter(format, "apt"))
}

// parsePayloadType reads a payload type of RTP, which has 7 bits.
func parsePayloadType(text string) (payloadType uint8, ok bool) {
	number, err := strconv.ParseUint(text, 10, 7)
	return uint8(number), err == nil
}
