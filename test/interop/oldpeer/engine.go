package oldpeer

import (
	"net"
	"strings"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/twcc"
	"github.com/pion/sdp/v3"
	"github.com/pion/webrtc/v4"
)

// The original's codecs, in addition to Pion's defaults.
var (
	videoCodec = webrtc.RTPCodecCapability{
		MimeType: "video/pcm", ClockRate: clockRate,
		RTCPFeedback: []webrtc.RTCPFeedback{{Type: "goog-remb"}, {Type: "ccm", Parameter: "fir"}, {Type: "nack"},
			{Type: "nack", Parameter: "pli"}},
	}
	audioCodec = webrtc.RTPCodecCapability{MimeType: "audio/pcm", ClockRate: clockRate}
)

const (
	videoPayloadType = 5
	audioPayloadType = 6
	// clockRate is that of both codecs. The original also increases a track's timestamp by this value with each frame.
	clockRate = 90000
	// feedbackInterval is the interval of the original's arrival reports.
	feedbackInterval = 10 * time.Millisecond
)

// newMediaEngine has the codecs of the original and the only header extension.
func newMediaEngine() (*webrtc.MediaEngine, error) {
	engine := &webrtc.MediaEngine{}
	if err := engine.RegisterDefaultCodecs(); err != nil {
		return nil, err
	}
	for _, codec := range []struct {
		capability webrtc.RTPCodecCapability
		number     webrtc.PayloadType
		kind       webrtc.RTPCodecType
	}{{videoCodec, videoPayloadType, webrtc.RTPCodecTypeVideo},
		{audioCodec, audioPayloadType, webrtc.RTPCodecTypeAudio}} {
		parameters := webrtc.RTPCodecParameters{RTPCodecCapability: codec.capability, PayloadType: codec.number}
		if err := engine.RegisterCodec(parameters, codec.kind); err != nil {
			return nil, err
		}
		engine.RegisterFeedback(webrtc.RTCPFeedback{Type: webrtc.TypeRTCPFBTransportCC}, codec.kind)
		if err := engine.RegisterHeaderExtension(webrtc.RTPHeaderExtensionCapability{URI: sdp.TransportCCURI},
			codec.kind); err != nil {
			return nil, err
		}
	}
	return engine, nil
}

// newInterceptors numbers sent packets and reports arrivals. The original does neither request nor send
// retransmissions, and sends no reports about streams.
func newInterceptors() (*interceptor.Registry, error) {
	registry := &interceptor.Registry{}
	numbering, err := twcc.NewHeaderExtensionInterceptor()
	if err != nil {
		return nil, err
	}
	reporting, err := twcc.NewSenderInterceptor(twcc.SendInterval(feedbackInterval))
	if err != nil {
		return nil, err
	}
	registry.Add(numbering)
	registry.Add(reporting)
	return registry, nil
}

// newConnection creates the peer connection. The original requests its address from Google's STUN server; this peer
// does not.
func newConnection(c Config, network *network) (*webrtc.PeerConnection, error) {
	engine, err := newMediaEngine()
	if err != nil {
		return nil, err
	}
	interceptors, err := newInterceptors()
	if err != nil {
		return nil, err
	}
	settings := webrtc.SettingEngine{}
	settings.SetNet(network)
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	settings.SetIncludeLoopbackCandidate(c.loopback())
	settings.SetIPFilter(func(ip net.IP) bool { return strings.HasPrefix(ip.String(), c.Addresses) })
	api := webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithInterceptorRegistry(interceptors),
		webrtc.WithSettingEngine(settings))
	return api.NewPeerConnection(webrtc.Configuration{})
}
