package netem_test

import (
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/internal/netem"
)

// The socket has the methods for pion/ice's path without allocations.
var _ ice.AddrPortReaderWriter = (*netem.Conn)(nil)

// newPeer returns a peer connection whose only candidate is a socket of the network. This is the configuration of
// whole-stack tests in virtual time:
//
//   - SetICEUDPMux: ICE, DTLS and SRTP use only the socket. The mux owns the socket; the peer connection does not close
//     the mux.
//   - SetICEMulticastDNSMode disabled: otherwise every peer connection opens a real multicast socket, whose reader
//     prevents virtual time from advancing.
//   - An explicit interceptor registry: a nil one means Pion's default interceptors.
//
// There is no SetNet, network types, interface filter or IP filter: the mux reports the socket's own address as the
// only candidate, which need not be an address of the machine. ICE-TCP and STUN servers are not used, because they need
// real sockets.
func newPeer(t *testing.T, mux ice.UDPMux) *webrtc.PeerConnection {
	t.Helper()
	var settings webrtc.SettingEngine
	settings.SetICEUDPMux(mux)
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	api := webrtc.NewAPI(webrtc.WithSettingEngine(settings), webrtc.WithInterceptorRegistry(&interceptor.Registry{}))
	pc, err := api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	return pc
}

func newMux(t *testing.T, n *netem.Network, address string) ice.UDPMux {
	t.Helper()
	return webrtc.NewICEUDPMux(nil, listen(t, n, address))
}

// negotiate makes the offerer offer and the answerer answer, with all candidates in the descriptions.
func negotiate(t *testing.T, offerer, answerer *webrtc.PeerConnection) {
	t.Helper()
	describe := func(pc *webrtc.PeerConnection,
		create func() (webrtc.SessionDescription, error)) webrtc.SessionDescription {
		gathered := webrtc.GatheringCompletePromise(pc)
		description, err := create()
		if err != nil {
			t.Fatal(err)
		}
		if err := pc.SetLocalDescription(description); err != nil {
			t.Fatal(err)
		}
		<-gathered
		return *pc.LocalDescription()
	}
	offer := describe(offerer, func() (webrtc.SessionDescription, error) { return offerer.CreateOffer(nil) })
	if err := answerer.SetRemoteDescription(offer); err != nil {
		t.Fatal(err)
	}
	answer := describe(answerer, func() (webrtc.SessionDescription, error) { return answerer.CreateAnswer(nil) })
	if err := offerer.SetRemoteDescription(answer); err != nil {
		t.Fatal(err)
	}
}

// connectedSignal returns a channel that is closed when the peer connection is connected.
func connectedSignal(pc *webrtc.PeerConnection) <-chan struct{} {
	connected := make(chan struct{})
	pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateConnected {
			close(connected)
		}
	})
	return connected
}

// addSender adds a sendonly VP8 track.
func addSender(t *testing.T, pc *webrtc.PeerConnection) *webrtc.TrackLocalStaticRTP {
	t.Helper()
	track, err := webrtc.NewTrackLocalStaticRTP(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8},
		"video", "stream")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pc.AddTransceiverFromTrack(track,
		webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly}); err != nil {
		t.Fatal(err)
	}
	return track
}

// countPackets counts the packets on all tracks.
func countPackets(pc *webrtc.PeerConnection) *atomic.Int64 {
	var received atomic.Int64
	pc.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		for {
			if _, _, err := track.ReadRTP(); err != nil {
				return
			}
			received.Add(1)
		}
	})
	return &received
}

// sendPackets writes count packets of 1,000 bytes, one every interval.
func sendPackets(t *testing.T, track *webrtc.TrackLocalStaticRTP, count int, interval time.Duration) {
	t.Helper()
	packet := rtp.Packet{Header: rtp.Header{Version: 2}, Payload: make([]byte, 1000)}
	for range count {
		packet.SequenceNumber++
		packet.Timestamp += 90
		if err := track.WriteRTP(&packet); err != nil {
			t.Fatal(err)
		}
		time.Sleep(interval)
	}
}

func closeAll(t *testing.T, muxes []ice.UDPMux, pcs ...*webrtc.PeerConnection) {
	t.Helper()
	for _, pc := range pcs {
		if err := pc.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, mux := range muxes {
		if err := mux.Close(); err != nil {
			t.Error(err)
		}
	}
}

// lossy is a one-way delay of 10 ms with 1 % loss.
var lossy = netem.Config{Delay: 10 * time.Millisecond, Loss: 0.01}

func TestPeerConnectionsInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, 1)
		setAccess(t, n, clientAddr, lossy, lossy)
		muxes := []ice.UDPMux{newMux(t, n, "10.0.0.1:7882"), newMux(t, n, "10.0.0.2:5000")}
		server, client := newPeer(t, muxes[0]), newPeer(t, muxes[1])
		track := addSender(t, server)
		received := countPackets(client)
		serverConnected, clientConnected := connectedSignal(server), connectedSignal(client)

		start := time.Now()
		negotiate(t, server, client)
		<-serverConnected
		<-clientConnected
		t.Logf("connected after %v of virtual time", time.Since(start))
		if elapsed := time.Since(start); elapsed < 60*time.Millisecond || elapsed > 10*time.Second {
			t.Errorf("connected after %v, expected at least three round trips of 20 ms and no time-out", elapsed)
		}

		const count = 10_000
		upBefore, downBefore := n.AccessStats(clientAddr)
		sendPackets(t, track, count, time.Millisecond)
		time.Sleep(time.Second)
		_, down := n.AccessStats(clientAddr)
		lost := down.LostRandom - downBefore.LostRandom
		t.Logf("%d of %d packets received, the link lost %d; before that it had carried %d packets up and %d down",
			received.Load(), count, lost, upBefore.Sent, downBefore.Sent)
		// The link also loses ICE packets.
		if got := received.Load(); got > count || got < count-int64(lost) {
			t.Errorf("%d packets received, expected all but %d of %d", got, lost, count)
		}
		// Mean 100, three standard deviations of 10.
		if lost < 70 || lost > 130 {
			t.Errorf("%d packets lost, expected about 100", lost)
		}
		closeAll(t, muxes, server, client)
	})
}

// TestOneServerSocketManyClients is a conference: one muxed socket on the server, an access link per client.
func TestOneServerSocketManyClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, 2)
		serverMux := newMux(t, n, "10.0.0.1:7882")
		muxes := []ice.UDPMux{serverMux}
		var pcs []*webrtc.PeerConnection
		for i := range 3 {
			addr := netip.AddrFrom4([4]byte{10, 0, 1, byte(i + 1)})
			setAccess(t, n, addr, lossy, lossy)
			mux := newMux(t, n, netip.AddrPortFrom(addr, 5000).String())
			muxes = append(muxes, mux)
			server, client := newPeer(t, serverMux), newPeer(t, mux)
			pcs = append(pcs, server, client)
			track := addSender(t, client)
			received := countPackets(server)
			connected := connectedSignal(client)
			negotiate(t, client, server)
			<-connected
			sendPackets(t, track, 1000, time.Millisecond)
			time.Sleep(time.Second)
			if got := received.Load(); got < 970 || got > 1000 {
				t.Errorf("client %d: %d packets received of 1000, expected a loss of about 1 %%", i, got)
			}
		}
		closeAll(t, muxes, pcs...)
	})
}

func TestPeerConnectionsInRealTime(t *testing.T) {
	n := newNetwork(t, 3)
	setAccess(t, n, clientAddr, lossy, lossy)
	muxes := []ice.UDPMux{newMux(t, n, "10.0.0.1:7882"), newMux(t, n, "10.0.0.2:5000")}
	server, client := newPeer(t, muxes[0]), newPeer(t, muxes[1])
	addSender(t, server)
	connected := connectedSignal(client)
	start := time.Now()
	negotiate(t, server, client)
	select {
	case <-connected:
		t.Logf("connected after %v", time.Since(start))
	case <-time.After(30 * time.Second):
		t.Error("not connected within 30 s")
	}
	closeAll(t, muxes, server, client)
}
