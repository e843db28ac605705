package fanout

import (
	"fmt"

	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Payload types of video/volumetric and of its retransmissions.
const (
	payloadType = 96
	payloadRTX  = 97
)

// RegisterCodecs registers volumetric video with retransmissions, the only codec of the server and of the measuring
// clients.
func RegisterCodecs(engine *webrtc.MediaEngine) error {
	media := webrtc.RTPCodecParameters{
		RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType: volumetric.MIMEVolumetric, ClockRate: 90000,
			RTCPFeedback: []webrtc.RTCPFeedback{{Type: "nack"}, {Type: "nack", Parameter: "pli"},
				{Type: "ccm", Parameter: "fir"}},
		},
		PayloadType: payloadType,
	}
	retransmission := webrtc.RTPCodecParameters{
		RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType: webrtc.MimeTypeRTX, ClockRate: 90000, SDPFmtpLine: fmt.Sprintf("apt=%d", payloadType),
		},
		PayloadType: payloadRTX,
	}
	for _, codec := range []webrtc.RTPCodecParameters{media, retransmission} {
		if err := engine.RegisterCodec(codec, webrtc.RTPCodecTypeVideo); err != nil {
			return fmt.Errorf("register %s: %w", codec.MimeType, err)
		}
	}
	return nil
}
