package dialect

import (
	"net"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/twcc"
	"github.com/pion/sdp/v3"
	"github.com/pion/transport/v5"
	"github.com/pion/transport/v5/stdnet"
	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/internal/udp"
)

// The formats of the dialect. Payload types and clock rates are fixed.
const (
	videoPayloadType = 5
	audioPayloadType = 6
	clockRate        = 90000
)

var (
	videoCodec = webrtc.RTPCodecCapability{MimeType: "video/pcm", ClockRate: clockRate}
	audioCodec = webrtc.RTPCodecCapability{MimeType: "audio/pcm", ClockRate: clockRate}
)

const (
	// reportInterval is the interval of transport-wide feedback, as in VR2Gather's peer. Above 140 Mbit/s, a report
	// about 100 ms exceeds the size of a packet.
	reportInterval = 10 * time.Millisecond
	// socketBuffer is the requested size of the socket buffers in both directions. A capture of 9 tiles in 3 qualities
	// of 100 kB arrives in one burst and uses twice its size in a socket.
	socketBuffer = 8 << 20
	// replayWindow is the SRTP replay window in packets: two such captures.
	replayWindow = 8192
)

// newConnection returns the peer connection. RTP headers have 20 bytes: the transport-wide sequence number is the only
// extension.
func newConnection(config Config) (*webrtc.PeerConnection, error) {
	engine := &webrtc.MediaEngine{}
	for _, format := range []struct {
		codec  webrtc.RTPCodecCapability
		number webrtc.PayloadType
		kind   webrtc.RTPCodecType
	}{{videoCodec, videoPayloadType, webrtc.RTPCodecTypeVideo}, {audioCodec, audioPayloadType,
		webrtc.RTPCodecTypeAudio}} {
		if err := engine.RegisterCodec(webrtc.RTPCodecParameters{RTPCodecCapability: format.codec,
			PayloadType: format.number}, format.kind); err != nil {
			return nil, err
		}
		engine.RegisterFeedback(webrtc.RTCPFeedback{Type: webrtc.TypeRTCPFBTransportCC}, format.kind)
		if err := engine.RegisterHeaderExtension(webrtc.RTPHeaderExtensionCapability{URI: sdp.TransportCCURI},
			format.kind); err != nil {
			return nil, err
		}
	}
	interceptors := &interceptor.Registry{}
	numbering, err := twcc.NewHeaderExtensionInterceptor()
	if err != nil {
		return nil, err
	}
	reporting, err := twcc.NewSenderInterceptor(twcc.SendInterval(reportInterval))
	if err != nil {
		return nil, err
	}
	interceptors.Add(numbering)
	interceptors.Add(reporting)
	system, err := stdnet.NewNet()
	if err != nil {
		return nil, err
	}
	settings := webrtc.SettingEngine{}
	settings.SetNet(network{system})
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	settings.SetIncludeLoopbackCandidate(config.loopback())
	settings.SetSRTPReplayProtectionWindow(replayWindow)
	api := webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithInterceptorRegistry(interceptors),
		webrtc.WithSettingEngine(settings))
	return api.NewPeerConnection(webrtc.Configuration{})
}

// network is the system's network with larger socket buffers.
type network struct{ transport.Net }

// ListenUDP implements transport.Net.
func (n network) ListenUDP(family string, address *net.UDPAddr) (transport.UDPConn, error) {
	conn, err := n.Net.ListenUDP(family, address)
	if err != nil {
		return nil, err
	}
	if system, ok := conn.(*net.UDPConn); ok {
		udp.EnlargeBuffers(system, socketBuffer, socketBuffer)
	}
	return conn, nil
}
