package hotpath

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"sync"

	"github.com/pion/dtls/v3"
	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/logging"
	"github.com/pion/transport/v5/packetio"
	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/lab/fanout"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// errConnection says that a peer connection did not come about.
var errConnection = errors.New("peer connection failed")

// peer is a client's peer connection on a socket of its own: two connections between the same two sockets would be taken for one another.
type peer struct {
	api       *webrtc.API
	pc        *webrtc.PeerConnection
	socket    *socket
	mux       ice.UDPMux
	reception *reception
	connected chan struct{}
	failed    chan struct{}
}

// newPeer makes a peer. every is how many packets there are for one whose times are taken, 0 for none.
func newPeer(every int) (*peer, error) {
	p := &peer{reception: newReception(every), connected: make(chan struct{}), failed: make(chan struct{})}
	var err error
	if p.socket, err = openSocket(p.reception.observe); err != nil {
		return nil, err
	}
	logs := logging.NewDefaultLoggerFactory()
	logs.DefaultLogLevel = logging.LogLevelDisabled
	p.mux = webrtc.NewICEUDPMux(logs.NewLogger("ice"), p.socket)
	engine := &webrtc.MediaEngine{}
	err = errors.Join(fanout.RegisterCodecs(engine), engine.RegisterCodec(webrtc.RTPCodecParameters{
		RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: volumetric.MIMEOpus, ClockRate: 48000, Channels: 2}, PayloadType: 111,
	}, webrtc.RTPCodecTypeAudio))
	if err == nil {
		p.api = webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithInterceptorRegistry(&interceptor.Registry{}), webrtc.WithSettingEngine(p.settings(logs)))
		p.pc, err = p.api.NewPeerConnection(webrtc.Configuration{BundlePolicy: webrtc.BundlePolicyMaxBundle})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("new peer connection: %w", err), p.mux.Close())
	}
	var connected, failed sync.Once
	p.pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		switch state {
		case webrtc.PeerConnectionStateConnected:
			connected.Do(func() { close(p.connected) })
		case webrtc.PeerConnectionStateFailed, webrtc.PeerConnectionStateClosed:
			failed.Do(func() { close(p.failed) })
		}
	})
	return p, nil
}

// settings are those of all measured connections: the socket, and the cipher that costs least, so that no server is made to use another.
func (p *peer) settings(logs logging.LoggerFactory) webrtc.SettingEngine {
	s := webrtc.SettingEngine{LoggerFactory: logs}
	s.SetICEUDPMux(p.mux)
	s.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	s.SetIncludeLoopbackCandidate(true)
	s.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	s.SetSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM)
	s.SetSRTPReplayProtectionWindow(8192)
	s.BufferFactory = func(kind packetio.BufferPacketType, _ uint32) io.ReadWriteCloser {
		return tap{p.reception, kind == packetio.RTPBufferPacket}
	}
	return s
}

// tap is where Pion leaves the decrypted packets of a stream. It keeps none.
type tap struct {
	reception *reception
	media     bool
}

func (t tap) Write(packet []byte) (int, error) {
	if t.media {
		t.reception.decrypted(packet)
	}
	return len(packet), nil
}

func (t tap) Read([]byte) (int, error) { return 0, io.EOF }
func (t tap) Close() error             { return nil }

// track makes a track to publish.
func (p *peer) track(name string) (*webrtc.TrackLocalStaticRTP, error) {
	return webrtc.NewTrackLocalStaticRTP(webrtc.RTPCodecCapability{MimeType: volumetric.MIMEVolumetric, ClockRate: 90000}, name, "lab")
}

// mapping is the line of a description by which a payload type is video/volumetric (RFC 8866 section 6.6).
var mapping = regexp.MustCompile(`(?i)a=rtpmap:(\d+) volumetric/90000`)

// negotiated notes which payload type the remote description gives media.
func (p *peer) negotiated(description string) error {
	found := mapping.FindStringSubmatch(description)
	if found == nil {
		return fmt.Errorf("%w: no %s in the server's description", errConnection, volumetric.MIMEVolumetric)
	}
	number, err := strconv.ParseUint(found[1], 10, 7)
	if err != nil {
		return fmt.Errorf("%w: payload type %s", errConnection, found[1])
	}
	p.reception.expect(uint8(number))
	return nil
}

// close ends the connection; the mux closes the socket.
func (p *peer) close() error { return errors.Join(p.pc.Close(), p.mux.Close()) }
