package standin

import (
	"net"
	"strings"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/twcc"
	"github.com/pion/sdp/v3"
	"github.com/pion/webrtc/v4"
)

// The codecs of the original.
var (
	videoCodec = webrtc.RTPCodecCapability{MimeType: "video/pcm", ClockRate: 90000}
	audioCodec = webrtc.RTPCodecCapability{MimeType: "audio/pcm", ClockRate: 90000}
)

// newConnection creates a member's connection.
func newConnection(c Config) (*webrtc.PeerConnection, error) {
	engine, registry := &webrtc.MediaEngine{}, &interceptor.Registry{}
	for kind, codec := range map[webrtc.RTPCodecType]webrtc.RTPCodecParameters{
		webrtc.RTPCodecTypeVideo: {RTPCodecCapability: videoCodec, PayloadType: 5},
		webrtc.RTPCodecTypeAudio: {RTPCodecCapability: audioCodec, PayloadType: 6},
	} {
		if err := engine.RegisterCodec(codec, kind); err != nil {
			return nil, err
		}
		if c.Faults.NoExtension {
			continue
		}
		engine.RegisterFeedback(webrtc.RTCPFeedback{Type: webrtc.TypeRTCPFBTransportCC}, kind)
		if err := engine.RegisterHeaderExtension(webrtc.RTPHeaderExtensionCapability{URI: sdp.TransportCCURI},
			kind); err != nil {
			return nil, err
		}
	}
	numbering, err := twcc.NewHeaderExtensionInterceptor()
	if err != nil {
		return nil, err
	}
	reporting, err := twcc.NewSenderInterceptor()
	if err != nil {
		return nil, err
	}
	registry.Add(numbering)
	registry.Add(reporting)
	settings := webrtc.SettingEngine{}
	if c.Net != nil {
		settings.SetNet(c.Net)
	}
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	settings.SetIncludeLoopbackCandidate(strings.HasPrefix(c.Addresses, "127."))
	settings.SetIPFilter(func(ip net.IP) bool { return strings.HasPrefix(ip.String(), c.Addresses) })
	api := webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithInterceptorRegistry(registry),
		webrtc.WithSettingEngine(settings))
	return api.NewPeerConnection(webrtc.Configuration{})
}
