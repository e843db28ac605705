package switching_test

import (
	"fmt"
	"log"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/pkg/switching"
)

// One RTPSender sends the packets of two tracks in turn. The receiver sees one stream without a
// gap.
func ExampleFactory_Swap() {
	factory := switching.NewInterceptor()

	// The sending side. Interceptors that number packets on the wire precede the factory; all
	// others follow.
	mediaEngine, registry := &webrtc.MediaEngine{}, &interceptor.Registry{}
	check(mediaEngine.RegisterDefaultCodecs())
	check(webrtc.ConfigureTWCCHeaderExtensionSender(mediaEngine, registry))
	registry.Add(factory)
	check(webrtc.RegisterDefaultInterceptors(mediaEngine, registry))
	sending, err := webrtc.NewAPI(
		webrtc.WithMediaEngine(
			mediaEngine,
		),
		webrtc.WithInterceptorRegistry(registry),
		webrtc.WithSettingEngine(loopback()),
	).NewPeerConnection(webrtc.Configuration{})
	check(err)
	receiving, err := webrtc.NewAPI(webrtc.WithSettingEngine(loopback())).NewPeerConnection(webrtc.Configuration{})
	check(err)

	low, high := newVP8Track("low"), newVP8Track("high")
	sender, err := sending.AddTrack(low)
	check(err)
	go pumpRTCP(sender) // interceptors see RTCP only if a goroutine reads it

	numbers := make(chan uint16, 16)
	receiving.OnTrack(func(remote *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		for {
			packet, _, err := remote.ReadRTP()
			if err != nil {
				return
			}
			numbers <- packet.SequenceNumber
		}
	})
	check(connect(sending, receiving))

	// The two sources are independent: their sequence numbers and timestamps are unrelated.
	write := func(track *webrtc.TrackLocalStaticRTP, sequence uint16, timestamp uint32) uint16 {
		keyFrame := []byte{0x10, 0x02, 0x00, 0x00, 0x9d, 0x01, 0x2a, 0x40, 0x01, 0xf0, 0x00}
		check(track.WriteRTP(&rtp.Packet{
			Header:  rtp.Header{Version: 2, SequenceNumber: sequence, Timestamp: timestamp, Marker: true},
			Payload: keyFrame,
		}))
		return <-numbers
	}
	first := write(low, 100, 9000)
	fmt.Println("low: ", write(low, 101, 12_000)-first)

	ssrc := uint32(sender.GetParameters().Encodings[0].SSRC)
	check(factory.Swap(ssrc, func() error { return sender.ReplaceTrack(high) }))
	fmt.Println("high:", write(high, 31_000, 777_000)-first)
	fmt.Println("high:", write(high, 31_001, 780_000)-first)

	check(sending.Close())
	check(receiving.Close())
	// Output:
	// low:  1
	// high: 2
	// high: 3
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func newVP8Track(id string) *webrtc.TrackLocalStaticRTP {
	track, err := webrtc.NewTrackLocalStaticRTP(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8}, id, "example")
	check(err)
	return track
}

func pumpRTCP(sender *webrtc.RTPSender) {
	b := make([]byte, 1500)
	for {
		if _, _, err := sender.Read(b); err != nil {
			return
		}
	}
}

// loopback confines ICE to this machine.
func loopback() webrtc.SettingEngine {
	var s webrtc.SettingEngine
	s.SetIncludeLoopbackCandidate(true)
	s.SetInterfaceFilter(func(name string) bool { return name == "lo" })
	s.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	return s
}

// connect negotiates in both directions and waits until the peers are connected.
func connect(offering, answering *webrtc.PeerConnection) error {
	connected := make(chan struct{}, 2)
	for _, pc := range []*webrtc.PeerConnection{offering, answering} {
		pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
			if state == webrtc.PeerConnectionStateConnected {
				connected <- struct{}{}
			}
		})
	}
	offer, err := offering.CreateOffer(nil)
	if err != nil {
		return err
	}
	gathered := webrtc.GatheringCompletePromise(offering)
	if err := offering.SetLocalDescription(offer); err != nil {
		return err
	}
	<-gathered
	if err := answering.SetRemoteDescription(*offering.LocalDescription()); err != nil {
		return err
	}
	answer, err := answering.CreateAnswer(nil)
	if err != nil {
		return err
	}
	gathered = webrtc.GatheringCompletePromise(answering)
	if err := answering.SetLocalDescription(answer); err != nil {
		return err
	}
	<-gathered
	if err := offering.SetRemoteDescription(*answering.LocalDescription()); err != nil {
		return err
	}
	for range 2 {
		select {
		case <-connected:
		case <-time.After(20 * time.Second):
			return fmt.Errorf("not connected after 20 s")
		}
	}
	return nil
}
