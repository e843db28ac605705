package transport

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

// foreigner is a peer connection of pion/webrtc. It represents browsers and other programs.
type foreigner struct {
	pc       *webrtc.PeerConnection
	received atomic.Int64
	sent     *webrtc.TrackLocalStaticRTP
}

func newForeigner(t *testing.T) *foreigner {
	t.Helper()
	engine := &webrtc.MediaEngine{}
	capability := webrtc.RTPCodecCapability{MimeType: volumetric.MIMEVolumetric, ClockRate: 90000}
	if err := engine.RegisterCodec(webrtc.RTPCodecParameters{RTPCodecCapability: capability, PayloadType: 96},
		webrtc.RTPCodecTypeVideo); err != nil {
		t.Fatal(err)
	}
	settings := webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	api := webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithSettingEngine(settings),
		webrtc.WithInterceptorRegistry(&interceptor.Registry{}))
	pc, err := api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	f := &foreigner{pc: pc}
	if f.sent, err = webrtc.NewTrackLocalStaticRTP(capability, "tile", "body"); err != nil {
		t.Fatal(err)
	}
	if _, err := pc.AddTrack(f.sent); err != nil {
		t.Fatal(err)
	}
	pc.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		for {
			if _, _, err := track.ReadRTP(); err != nil {
				return
			}
			f.received.Add(1)
		}
	})
	return f
}

// answer returns an answer to an offer, with all candidates.
func (f *foreigner) answer(t *testing.T, offer string) string {
	t.Helper()
	if err := f.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}); err != nil {
		t.Fatal(err)
	}
	gathered := webrtc.GatheringCompletePromise(f.pc)
	answer, err := f.pc.CreateAnswer(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.pc.SetLocalDescription(answer); err != nil {
		t.Fatal(err)
	}
	<-gathered
	return f.pc.LocalDescription().SDP
}

// TestMediaWithAForeignPeer connects to a peer connection of pion/webrtc, sends media to it and receives media from it.
func TestMediaWithAForeignPeer(t *testing.T) {
	config := DefaultConfig()
	config.Address, config.Port = "127.0.0.1", 0
	endpoint, err := Listen(config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = endpoint.Close() }()
	heard := newRecorder()
	peer, err := endpoint.NewPeer(heard)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = peer.Close() }()
	receiving, err := peer.AddReceiving(volumetric.KindVideo)
	if err != nil {
		t.Fatal(err)
	}
	sending, err := peer.AddSending(volumetric.KindVideo, "slot")
	if err != nil {
		t.Fatal(err)
	}
	offer, err := peer.Offer(false)
	if err != nil {
		t.Fatal(err)
	}
	foreign := newForeigner(t)
	defer func() { _ = foreign.pc.Close() }()
	streams, err := peer.Answered(foreign.answer(t, offer))
	if err != nil {
		t.Fatal(err)
	}
	theirs := streams[receiving.MID()].SSRC
	if theirs == 0 {
		t.Fatalf("the foreign peer sends nothing: %+v", streams)
	}
	deadline := time.After(wait.Patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for number := uint16(0); foreign.received.Load() < 10 || len(heard.packets(theirs)) < 10; number++ {
		select {
		case <-deadline:
			t.Fatalf("received %d and %d packets, expected 10 and more", foreign.received.Load(),
				len(heard.packets(theirs)))
		case <-tick.C:
		}
		// The endpoint sends nothing to this host's own addresses before something was received from there.
		for _, event := range peer.Events() {
			if event.Candidate == nil {
				continue
			}
			candidate := webrtc.ICECandidateInit{Candidate: event.Candidate.Candidate}
			if err := foreign.pc.AddICECandidate(candidate); err != nil {
				t.Fatal(err)
			}
		}
		header := rtp.Header{Version: 2, PayloadType: 96, SequenceNumber: number, SSRC: sending.Outlet.SSRC()}
		_ = sending.Outlet.WriteRTP(&header, []byte("payload"))
		if err := foreign.sent.WriteRTP(&rtp.Packet{Header: rtp.Header{Version: 2, SequenceNumber: number},
			Payload: []byte("payload")}); err != nil {
			t.Fatal(err)
		}
	}
}
