package hotpath

import (
	"context"
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
	"github.com/volsfu/volsfu/lab/hotpath/mediasocket"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// errConnection reports that a peer connection was not established.
var errConnection = errors.New("peer connection failed")

// peer is a client's peer connection with a socket of its own: a receiver cannot tell apart two connections between the
// same two sockets.
type peer struct {
	api       *webrtc.API
	pc        *webrtc.PeerConnection
	socket    *mediasocket.Socket
	mux       ice.UDPMux
	reception *reception
	connected chan struct{}
	failed    chan struct{}
}

// newPeer creates a peer. The times of one packet in every are measured; 0 measures none.
func newPeer(every int) (*peer, error) {
	p := &peer{reception: newReception(every), connected: make(chan struct{}), failed: make(chan struct{})}
	var err error
	if p.socket, err = mediasocket.Open(p.reception.observe); err != nil {
		return nil, err
	}
	logs := logging.NewDefaultLoggerFactory()
	logs.DefaultLogLevel = logging.LogLevelDisabled
	p.mux = webrtc.NewICEUDPMux(logs.NewLogger("ice"), p.socket)
	engine := &webrtc.MediaEngine{}
	err = errors.Join(fanout.RegisterCodecs(engine), engine.RegisterCodec(webrtc.RTPCodecParameters{
		RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: volumetric.MIMEOpus, ClockRate: 48000, Channels: 2},
		PayloadType:        111,
	}, webrtc.RTPCodecTypeAudio))
	if err == nil {
		p.api = webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithInterceptorRegistry(&interceptor.Registry{}),
			webrtc.WithSettingEngine(p.settings(logs)))
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

// settings returns the settings of all measured connections: the socket, and the cheapest cipher, so no server has to
// use another.
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

// tap receives the decrypted packets of a stream from Pion and discards them.
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

// track creates a track to publish.
func (p *peer) track(name string) (*webrtc.TrackLocalStaticRTP, error) {
	return webrtc.NewTrackLocalStaticRTP(webrtc.RTPCodecCapability{MimeType: volumetric.MIMEVolumetric,
		ClockRate: 90000}, name, "lab")
}

// mapping matches the SDP line that maps a payload type to video/volumetric (RFC 8866 section 6.6).
var mapping = regexp.MustCompile(`(?i)a=rtpmap:(\d+) volumetric/90000`)

// negotiated records the payload type of media in the remote description.
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

// connect waits until a peer connection is established.
func (p *peer) connect(ctx context.Context) error {
	select {
	case <-p.connected:
		return nil
	case <-p.failed:
		return errConnection
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errConnection, ctx.Err())
	}
}

// close ends the connection; the mux closes the socket.
func (p *peer) close() error { return errors.Join(p.pc.Close(), p.mux.Close()) }
