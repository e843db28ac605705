package rtc

import (
	"errors"
	"fmt"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/cc"
	"github.com/pion/interceptor/pkg/nack"
	"github.com/pion/interceptor/pkg/twcc"
	"github.com/pion/logging"
	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Parameters of the systems of the papers.
const (
	// bufferedPackets is the number of packets kept for retransmission; retries is the number of requests for each.
	bufferedPackets = 1024
	retries         = 1
	// reportInterval is the interval of a receiver's reports.
	reportInterval = 10 * time.Millisecond
	// replayWindow is the largest distance of an accepted packet from the newest packet. Pion's default of 64 would
	// reject every retransmission at these rates: at 46 Mbit/s, 500 packets arrive before a retransmission. The window
	// is as long as the buffer here, so that repair works as described in the papers.
	replayWindow = bufferedPackets
)

const (
	clockRate   = 90000
	payloadType = 96
)

// api returns Pion's API for one side.
func api(configure func(*webrtc.MediaEngine, *interceptor.Registry) error) (*webrtc.API, error) {
	logs := logging.NewDefaultLoggerFactory()
	logs.DefaultLogLevel = logging.LogLevelDisabled
	settings := webrtc.SettingEngine{LoggerFactory: logs}
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	settings.SetSRTPReplayProtectionWindow(replayWindow)
	engine, registry := &webrtc.MediaEngine{}, &interceptor.Registry{}
	err := engine.RegisterCodec(webrtc.RTPCodecParameters{
		RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType: volumetric.MIMEVolumetric, ClockRate: clockRate,
			RTCPFeedback: []webrtc.RTCPFeedback{{Type: "nack"}, {Type: webrtc.TypeRTCPFBTransportCC}},
		},
		PayloadType: payloadType,
	}, webrtc.RTPCodecTypeVideo)
	if err = errors.Join(err, configure(engine, registry)); err != nil {
		return nil, fmt.Errorf("pion: %w", err)
	}
	return webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithInterceptorRegistry(registry),
		webrtc.WithSettingEngine(settings)), nil
}

// sending configures the publishing side. The interceptor added first is nearest to the wire: packets are numbered
// before they are paced, and stored before both.
func sending(estimate Estimator, least, most volumetric.Bitrate,
	estimators chan<- cc.BandwidthEstimator) func(*webrtc.MediaEngine, *interceptor.Registry) error {
	return func(engine *webrtc.MediaEngine, registry *interceptor.Registry) error {
		control, err := cc.NewInterceptor(func() (cc.BandwidthEstimator,
			error) {
			return estimate(int(least), int(most))
		})
		if err != nil {
			return err
		}
		control.OnNewPeerConnection(func(_ string, estimator cc.BandwidthEstimator) {
			select {
			case estimators <- estimator:
			default: // only one connection is used
			}
		})
		registry.Add(control)
		if err := webrtc.ConfigureTWCCHeaderExtensionSender(engine, registry); err != nil {
			return err
		}
		responder, err := nack.NewResponderInterceptor(nack.ResponderSize(bufferedPackets))
		if err == nil {
			registry.Add(responder)
		}
		return err
	}
}

// receiving configures the watching side.
func receiving(engine *webrtc.MediaEngine, registry *interceptor.Registry) error {
	if err := webrtc.ConfigureTWCCSenderWithOptions(engine, registry, twcc.SendInterval(reportInterval)); err != nil {
		return err
	}
	generator, err := nack.NewGeneratorInterceptor(nack.GeneratorSize(bufferedPackets),
		nack.GeneratorMaxNacksPerPacket(retries))
	if err == nil {
		registry.Add(generator)
	}
	return err
}

// rtpOverhead is the size of a packet without its payload, in bytes: 12 of RTP, 8 of its extension, 16 of SRTP's tag.
const rtpOverhead = 12 + 8 + 16
