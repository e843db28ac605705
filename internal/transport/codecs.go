package transport

import (
	"fmt"

	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// The payload types that an endpoint offers. Retransmissions of each have the number after it.
const (
	payloadTypeVolumetric = 96
	payloadTypeOpaque     = 98
	payloadTypeVP8        = 100
	payloadTypeH264       = 102
	payloadTypeOpus       = 111
)

// videoCodecs are offered on every line of kind video, in this order.
var videoCodecs = []struct {
	mimeType    string
	payloadType webrtc.PayloadType
	format      string
}{
	{volumetric.MIMEVolumetric, payloadTypeVolumetric, ""},
	{volumetric.MIMEOpaque, payloadTypeOpaque, ""},
	{volumetric.MIMEVP8, payloadTypeVP8, ""},
	{volumetric.MIMEH264, payloadTypeH264, "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f"},
}

// newMediaEngine registers the codecs. Every video codec has RTX, on a payload type of its own.
func newMediaEngine() (*webrtc.MediaEngine, error) {
	engine := &webrtc.MediaEngine{}
	feedback := []webrtc.RTCPFeedback{{Type: "nack"}, {Type: "nack", Parameter: "pli"}, {Type: "ccm", Parameter: "fir"}}
	for _, c := range videoCodecs {
		media := webrtc.RTPCodecParameters{
			RTPCodecCapability: webrtc.RTPCodecCapability{
				MimeType: c.mimeType, ClockRate: 90000, SDPFmtpLine: c.format, RTCPFeedback: feedback,
			},
			PayloadType: c.payloadType,
		}
		retransmission := webrtc.RTPCodecParameters{
			RTPCodecCapability: webrtc.RTPCodecCapability{
				MimeType: webrtc.MimeTypeRTX, ClockRate: 90000, SDPFmtpLine: fmt.Sprintf("apt=%d", c.payloadType),
			},
			PayloadType: c.payloadType + 1,
		}
		for _, parameters := range []webrtc.RTPCodecParameters{media, retransmission} {
			if err := engine.RegisterCodec(parameters, webrtc.RTPCodecTypeVideo); err != nil {
				return nil, fmt.Errorf("register %s: %w", parameters.MimeType, err)
			}
		}
	}
	opus := webrtc.RTPCodecParameters{
		RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType: volumetric.MIMEOpus, ClockRate: 48000, Channels: 2, SDPFmtpLine: "minptime=10;useinbandfec=1",
		},
		PayloadType: payloadTypeOpus,
	}
	if err := engine.RegisterCodec(opus, webrtc.RTPCodecTypeAudio); err != nil {
		return nil, fmt.Errorf("register %s: %w", opus.MimeType, err)
	}
	return engine, nil
}

// kindOf is Pion's word for a kind.
func kindOf(kind volumetric.Kind) webrtc.RTPCodecType {
	if kind == volumetric.KindAudio {
		return webrtc.RTPCodecTypeAudio
	}
	return webrtc.RTPCodecTypeVideo
}
