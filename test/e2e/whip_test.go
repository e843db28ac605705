package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/logging"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/sdp/v3"
	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// httpSession is a session of WHIP or WHEP with Pion's peer connection.
type httpSession struct {
	t        *testing.T
	pc       *webrtc.PeerConnection
	base     string
	location string
	tag      string
	answer   string
}

// newPion returns a peer connection for loopback.
func newPion(t *testing.T) *webrtc.PeerConnection {
	t.Helper()
	settings := webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	settings.LoggerFactory = &logging.DefaultLoggerFactory{DefaultLogLevel: logging.LogLevelDisabled}
	engine := &webrtc.MediaEngine{}
	if err := engine.RegisterDefaultCodecs(); err != nil {
		t.Fatal(err)
	}
	for _, uri := range []string{sdp.SDESMidURI, sdp.SDESRTPStreamIDURI, sdp.TransportCCURI} {
		if err := engine.RegisterHeaderExtension(webrtc.RTPHeaderExtensionCapability{URI: uri},
			webrtc.RTPCodecTypeVideo); err != nil {
			t.Fatal(err)
		}
	}
	pc, err := webrtc.NewAPI(webrtc.WithSettingEngine(settings), webrtc.WithMediaEngine(engine)).
		NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pc.Close() })
	return pc
}

// request sends a request, and returns the response and its body.
func request(t *testing.T, method, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport, Timeout: patience}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

// httpOf returns the address of a server for requests.
func httpOf(c *testbed.Conference) string { return "http" + strings.TrimPrefix(c.Server.URL(), "ws") }

// offerOf returns the offer of a peer connection, which sends its candidates later.
func offerOf(t *testing.T, pc *webrtc.PeerConnection, options *webrtc.OfferOptions) string {
	t.Helper()
	offer, err := pc.CreateOffer(options)
	if err == nil {
		err = pc.SetLocalDescription(offer)
	}
	if err != nil {
		t.Fatal(err)
	}
	return offer.SDP
}

// post posts the offer of a peer connection and applies the answer.
func post(t *testing.T, c *testbed.Conference, path string, pc *webrtc.PeerConnection) *httpSession {
	t.Helper()
	base := httpOf(c)
	response, body := request(t, http.MethodPost, base+path, offerOf(t, pc, nil), "Content-Type", "application/sdp")
	if response.StatusCode != http.StatusCreated {
		t.Fatalf("status is %s: %s", response.Status, body)
	}
	s := &httpSession{t: t, pc: pc, base: base, location: response.Header.Get("Location"),
		tag: response.Header.Get("ETag"), answer: body}
	s.apply(body)
	if s.location == "" || s.tag == "" || response.Header.Get("Content-Type") != "application/sdp" {
		t.Fatalf("the header is %v", response.Header)
	}
	return s
}

func (s *httpSession) apply(answer string) {
	s.t.Helper()
	err := s.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer})
	if err != nil {
		s.t.Fatalf("%v in\n%s", err, answer)
	}
}

// end ends the session by DELETE.
func (s *httpSession) end() {
	s.t.Helper()
	if response, body := request(s.t, http.MethodDelete, s.base+s.location, ""); response.StatusCode != http.StatusOK {
		s.t.Fatalf("status is %s: %s", response.Status, body)
	}
}

// expectEnded fails the test unless the session has ended.
func (s *httpSession) expectEnded() {
	s.t.Helper()
	response, _ := request(s.t, http.MethodDelete, s.base+s.location, "")
	if response.StatusCode != http.StatusNotFound {
		s.t.Errorf("the session has status %s, expected 404", response.Status)
	}
}

func (s *httpSession) awaitConnected() {
	s.t.Helper()
	wait.Until(s.t, "the connection is established", func() bool {
		return s.pc.ConnectionState() == webrtc.PeerConnectionStateConnected
	})
}

// camera is a WHIP encoder that sends frames of H264 and sound at 30 frames per second. It answers a request for a key
// frame with the next frame.
type camera struct {
	*httpSession
	stop    chan struct{}
	running sync.WaitGroup
}

// startCamera starts an encoder with simulcast of the given encodings, in the order of the offer, or without if there
// are none.
func startCamera(t *testing.T, c *testbed.Conference, path string, layers ...string) *camera {
	t.Helper()
	pc := newPion(t)
	codec := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeH264, ClockRate: 90000,
		SDPFmtpLine: "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f"}
	var tracks []*webrtc.TrackLocalStaticRTP
	track := func(options ...func(*webrtc.TrackLocalStaticRTP)) *webrtc.TrackLocalStaticRTP {
		made, err := webrtc.NewTrackLocalStaticRTP(codec, "video", "camera", options...)
		if err != nil {
			t.Fatal(err)
		}
		tracks = append(tracks, made)
		return made
	}
	for _, layer := range layers {
		track(webrtc.WithRTPStreamID(layer))
	}
	if len(layers) == 0 {
		track()
	}
	sendonly := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly}
	video, err := pc.AddTransceiverFromTrack(tracks[0], sendonly)
	if err != nil {
		t.Fatal(err)
	}
	if err := video.SetCodecPreferences([]webrtc.RTPCodecParameters{
		{RTPCodecCapability: codec, PayloadType: 106},
	}); err != nil {
		t.Fatal(err)
	}
	for _, encoding := range tracks[1:] {
		if err := video.Sender().AddEncoding(encoding); err != nil {
			t.Fatal(err)
		}
	}
	sound, err := webrtc.NewTrackLocalStaticRTP(
		webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2}, "sound", "camera")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pc.AddTransceiverFromTrack(sound, sendonly); err != nil {
		t.Fatal(err)
	}
	e := &camera{httpSession: post(t, c, path, pc), stop: make(chan struct{})}
	wanted := make([]atomic.Bool, len(tracks))
	for q := range tracks {
		e.running.Go(func() { e.readRequests(video.Sender(), layers, q, &wanted[q]) })
	}
	e.running.Go(func() { e.send(video, tracks, sound, layers, wanted) })
	t.Cleanup(func() {
		close(e.stop)
		_ = pc.Close()
		e.running.Wait()
	})
	return e
}

// readRequests reads RTCP of one encoding.
func (e *camera) readRequests(sender *webrtc.RTPSender, layers []string, q int, wanted *atomic.Bool) {
	for {
		var packets []rtcp.Packet
		var err error
		if len(layers) > 0 {
			packets, _, err = sender.ReadSimulcastRTCP(layers[q])
		} else {
			packets, _, err = sender.ReadRTCP()
		}
		if err != nil {
			return
		}
		for _, packet := range packets {
			if _, ok := packet.(*rtcp.PictureLossIndication); ok {
				wanted.Store(true)
			}
		}
	}
}

// send sends frames until the encoder stops.
func (e *camera) send(
	video *webrtc.RTPTransceiver, tracks []*webrtc.TrackLocalStaticRTP, sound *webrtc.TrackLocalStaticRTP,
	layers []string, wanted []atomic.Bool,
) {
	extensions := map[string]uint8{}
	for _, extension := range video.Sender().GetParameters().HeaderExtensions {
		extensions[extension.URI] = uint8(extension.ID)
	}
	ticker := time.NewTicker(time.Second / 30)
	defer ticker.Stop()
	sequences := make([]uint16, len(tracks))
	for number := uint32(0); ; number++ {
		select {
		case <-e.stop:
			return
		case <-ticker.C:
		}
		for q, track := range tracks {
			nal := byte(nalSlice)
			if wanted[q].Swap(false) {
				nal = nalIDR
			}
			payloads := foreignPayloads(nal, volumetric.Quality(q), number)
			for i, payload := range payloads {
				sequences[q]++
				p := &rtp.Packet{Payload: payload, Header: rtp.Header{
					Version: 2, SequenceNumber: sequences[q], Timestamp: number * 3000, Marker: i == len(payloads)-1,
				}}
				if len(layers) > 0 {
					_ = p.SetExtension(extensions[sdp.SDESMidURI], []byte(video.Mid()))
					_ = p.SetExtension(extensions[sdp.SDESRTPStreamIDURI], []byte(layers[q]))
				}
				_ = track.WriteRTP(p)
			}
		}
		_ = sound.WriteRTP(&rtp.Packet{Payload: []byte{0xfc, byte(number)}, Header: rtp.Header{
			Version: 2, SequenceNumber: uint16(number), Timestamp: number * 1600,
		}})
	}
}

// player is a WHEP player.
type player struct {
	*httpSession
	mu sync.Mutex
	// packets are those of video, sounds counts those of sound.
	packets []*rtp.Packet
	sounds  int
}

// play starts a player.
func play(t *testing.T, c *testbed.Conference, path string) *player {
	t.Helper()
	pc := newPion(t)
	p := &player{}
	var reading sync.WaitGroup
	pc.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		reading.Go(func() { p.read(track) })
	})
	for _, kind := range []webrtc.RTPCodecType{webrtc.RTPCodecTypeVideo, webrtc.RTPCodecTypeAudio} {
		if _, err := pc.AddTransceiverFromKind(kind, webrtc.RTPTransceiverInit{
			Direction: webrtc.RTPTransceiverDirectionRecvonly}); err != nil {
			t.Fatal(err)
		}
	}
	p.httpSession = post(t, c, path, pc)
	t.Cleanup(func() {
		_ = pc.Close()
		reading.Wait()
	})
	return p
}

func (p *player) read(track *webrtc.TrackRemote) {
	for {
		packet, _, err := track.ReadRTP()
		if err != nil {
			return
		}
		p.mu.Lock()
		if track.Kind() == webrtc.RTPCodecTypeVideo {
			p.packets = append(p.packets, packet)
		} else {
			p.sounds++
		}
		p.mu.Unlock()
	}
}

// frames returns the number of complete frames of a quality and checks that the first begins with a key frame.
func (p *player) frames(q volumetric.Quality) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, packet := range p.packets {
		if len(packet.Payload) < 7 {
			continue
		}
		if i == 0 && (packet.Payload[0] != nalIDR || packet.Payload[2] != 0) {
			p.t.Errorf("the first packet has NAL type %d and is packet %d of its frame", packet.Payload[0],
				packet.Payload[2])
		}
		if packet.Marker && volumetric.Quality(packet.Payload[1]) == q {
			n++
		}
	}
	return n
}

func (p *player) heard() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sounds
}

// watchRoom joins as a receiver with the SDK, and counts the packets of each publication.
func watchRoom(t *testing.T, c *testbed.Conference) (counted func(publication string) int) {
	t.Helper()
	session := watchForeign(t, c)
	var mu sync.Mutex
	counts := map[string]int{}
	var reading sync.WaitGroup
	reading.Go(func() {
		for p := range session.Packets() {
			mu.Lock()
			counts[p.Track.Publication]++
			mu.Unlock()
		}
	})
	t.Cleanup(func() {
		_ = session.Close()
		reading.Wait()
	})
	return func(publication string) int {
		mu.Lock()
		defer mu.Unlock()
		return counts[publication]
	}
}

// participants returns the states of a room's participants.
func participants(t *testing.T, c *testbed.Conference, room string) (states []struct {
	Identity     string
	Protocol     string
	Publications []struct {
		Name, Codec string
		Qualities   []string
	}
}) {
	t.Helper()
	response, body := request(t, http.MethodGet, "http://"+c.Server.AdminAddress()+"/admin/v1/rooms/"+room, "")
	if response.StatusCode == http.StatusNotFound {
		return nil
	}
	var state struct{ Participants json.RawMessage }
	err := json.Unmarshal([]byte(body), &state)
	if err == nil {
		err = json.Unmarshal(state.Participants, &states)
	}
	if err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return states
}

// TestWHIPAndWHEP publishes by WHIP. A client of the SDK in the room and a WHEP player receive the video, which begins
// with a key frame, and the sound. The player continues when the encoder has returned.
func TestWHIPAndWHEP(t *testing.T) {
	c := startConference(t, wide)
	encoder := startCamera(t, c, "/v1/whip/room?identity=alice")
	encoder.awaitConnected()
	counted := watchRoom(t, c)
	watcher := play(t, c, "/v1/whep/room/alice?identity=screen")
	wait.Until(t, "video and sound arrive", func() bool {
		return watcher.frames(0) > 20 && watcher.heard() > 20 && counted("webcam") > 60 && counted("voice") > 20
	})
	states := participants(t, c, "room")
	var found []string
	for _, p := range states {
		text := p.Identity + " " + p.Protocol
		for _, publication := range p.Publications {
			text += fmt.Sprintf(" %s:%s:%d", publication.Name, publication.Codec, len(publication.Qualities))
		}
		found = append(found, text)
	}
	want := []string{"alice WHIP webcam:video/H264:1 voice:audio/opus:1", "bob ", "screen WHEP"}
	if !slices.Equal(found, want) {
		t.Errorf("the room has %q, expected %q", found, want)
	}
	encoder.end()
	before := watcher.frames(0)
	if len(participants(t, c, "room")) != 2 {
		t.Error("the encoder is still in the room")
	}
	encoder.expectEnded()
	startCamera(t, c, "/v1/whip/room?identity=alice").awaitConnected()
	wait.Until(t, "the player continues", func() bool { return watcher.frames(0) > before+20 })
	watcher.end()
}

// TestWHIPSimulcast publishes three encodings. The names in the packets identify them, the first of the offer is the
// best, and a client receives the quality that it chooses.
func TestWHIPSimulcast(t *testing.T) {
	c := startConference(t, wide)
	encoder := startCamera(t, c, "/v1/whip/room?identity=alice", "0", "1", "2")
	encoder.awaitConnected()
	for _, want := range []string{"a=simulcast:recv 2;1;0", "a=rid:0 recv"} {
		if !strings.Contains(encoder.answer, want) {
			t.Errorf("the answer lacks %s:\n%s", want, encoder.answer)
		}
	}
	states := participants(t, c, "room")
	if got := states[0].Publications[0].Qualities; !slices.Equal(got, []string{"2", "1", "0"}) {
		t.Errorf("the qualities are %q", got)
	}
	watcher := play(t, c, "/v1/whep/room/alice")
	// foreignPayloads has the index in the offer.
	wait.Until(t, "the best quality arrives", func() bool { return watcher.frames(0) > 20 })
}

// TestWHEPWithoutAPublisher plays a participant that publishes nothing yet.
func TestWHEPWithoutAPublisher(t *testing.T) {
	c := startConference(t, wide)
	pc := newPion(t)
	if _, err := pc.AddTransceiverFromKind(webrtc.RTPCodecTypeVideo, webrtc.RTPTransceiverInit{
		Direction: webrtc.RTPTransceiverDirectionRecvonly}); err != nil {
		t.Fatal(err)
	}
	offer := offerOf(t, pc, nil)
	response, body := request(t, http.MethodPost, httpOf(c)+"/v1/whep/room/alice", offer,
		"Content-Type", "application/sdp")
	if response.StatusCode != http.StatusConflict || response.Header.Get("Retry-After") == "" ||
		!strings.Contains(body, `\"alice\" publishes nothing in room \"room\"`) {
		t.Errorf("status is %s, Retry-After %q: %s", response.Status, response.Header.Get("Retry-After"), body)
	}
	if participants(t, c, "room") != nil {
		t.Error("the player has opened a room")
	}
}

// TestWHIPRestartsICE sends candidates and restarts ICE by PATCH.
func TestWHIPRestartsICE(t *testing.T) {
	c := startConference(t, wide)
	encoder := startCamera(t, c, "/v1/whip/room?identity=alice")
	encoder.awaitConnected()
	patch := func(body string, header ...string) *http.Response {
		response, text := request(t, http.MethodPatch, encoder.base+encoder.location, body,
			append([]string{"Content-Type", "application/trickle-ice-sdpfrag"}, header...)...)
		t.Log(response.Status, text)
		return response
	}
	candidate := "a=mid:0\r\na=candidate:1 1 udp 2130706431 127.0.0.1 9 typ host\r\n"
	for _, test := range []struct {
		header []string
		body   string
		want   int
	}{
		{nil, candidate, http.StatusPreconditionRequired},
		{[]string{"If-Match", `"other"`}, candidate, http.StatusPreconditionFailed},
		{[]string{"If-Match", encoder.tag}, candidate, http.StatusNoContent},
		{[]string{"If-Match", encoder.tag}, "hello", http.StatusBadRequest},
		{[]string{"If-Match", encoder.tag, "Content-Type", "application/sdp"}, candidate,
			http.StatusUnsupportedMediaType},
	} {
		if response := patch(test.body, test.header...); response.StatusCode != test.want {
			t.Errorf("%v with %q: status is %s, expected %d", test.header, test.body, response.Status, test.want)
		}
	}
	offer, err := description.Parse(offerOf(t, encoder.pc, &webrtc.OfferOptions{ICERestart: true}))
	if err != nil {
		t.Fatal(err)
	}
	response, text := request(t, http.MethodPatch, encoder.base+encoder.location, offer.MarshalFragment(),
		"Content-Type", "application/trickle-ice-sdpfrag", "If-Match", "*")
	tag := response.Header.Get("ETag")
	if response.StatusCode != http.StatusOK || tag == "" || tag == encoder.tag {
		t.Fatalf("status is %s, ETag %s: %s", response.Status, tag, text)
	}
	fragment, err := description.ParseFragment(text)
	if err != nil || fragment.Ufrag == "" || len(fragment.Candidates) == 0 {
		t.Fatalf("the fragment is %+v (%v)", fragment, err)
	}
	answer, err := description.Parse(encoder.answer)
	if err != nil {
		t.Fatal(err)
	}
	role := answer.Transport.Role
	fingerprint := answer.Transport.Fingerprint
	answer.Transport = fragment
	answer.Transport.Role, answer.Transport.Fingerprint = role, fingerprint
	encoder.apply(answer.Marshal())
	if response := patch(candidate, "If-Match", encoder.tag); response.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("the former ETag has status %s, expected 412", response.Status)
	}
	counted := watchRoom(t, c)
	wait.Until(t, "video arrives after the restart", func() bool { return counted("webcam") > 60 })
}

// TestWHIPSessionsEnd ends encoders without DELETE: by closing the connection, by silence, and by an operator.
func TestWHIPSessionsEnd(t *testing.T) {
	c := startConference(t, wide, func(c *config.Config) {
		c.Media.DisconnectedTimeout, c.Media.FailedTimeout = time.Second, time.Second
	})
	left := func(identity string) func() bool {
		return func() bool {
			return !slices.ContainsFunc(participants(t, c, "room"), func(p struct {
				Identity     string
				Protocol     string
				Publications []struct {
					Name, Codec string
					Qualities   []string
				}
			}) bool {
				return p.Identity == identity
			})
		}
	}
	closed := startCamera(t, c, "/v1/whip/room?identity=closed")
	kicked := startCamera(t, c, "/v1/whip/room?identity=kicked")
	// The third encoder never connects: its answer is not applied.
	closed.awaitConnected()
	kicked.awaitConnected()
	_ = closed.pc.Close()
	wait.Until(t, "the closed encoder has left", left("closed"))
	request(t, http.MethodDelete, "http://"+c.Server.AdminAddress()+"/admin/v1/rooms/room/participants/kicked", "")
	wait.Until(t, "the kicked encoder has left", left("kicked"))
	wait.Until(t, "the kicked encoder's connection ends", func() bool {
		return kicked.pc.ConnectionState() == webrtc.PeerConnectionStateClosed ||
			kicked.pc.ConnectionState() == webrtc.PeerConnectionStateFailed ||
			kicked.pc.ConnectionState() == webrtc.PeerConnectionStateDisconnected
	})
	kicked.expectEnded()
}

// TestWHIPNeedsAToken checks the claims of tokens, and that an encoder with the same token replaces its former session.
func TestWHIPNeedsAToken(t *testing.T) {
	var token string
	c := startConference(t, wide, func(c *config.Config) {
		var err error
		if token, err = testbed.RequireToken(c); err != nil {
			t.Fatal(err)
		}
	})
	pc := newPion(t)
	if _, err := pc.AddTransceiverFromKind(webrtc.RTPCodecTypeVideo, webrtc.RTPTransceiverInit{
		Direction: webrtc.RTPTransceiverDirectionSendonly}); err != nil {
		t.Fatal(err)
	}
	offer := offerOf(t, pc, nil)
	url := httpOf(c) + "/v1/whip/room?identity=alice"
	response, body := request(t, http.MethodPost, url, offer, "Content-Type", "application/sdp")
	if response.StatusCode != http.StatusUnauthorized ||
		response.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("without a token: status is %s: %s", response.Status, body)
	}
	var locations []string
	for range 2 {
		response, body = request(t, http.MethodPost, url, offer, "Content-Type", "application/sdp",
			"Authorization", "Bearer "+token)
		if response.StatusCode != http.StatusCreated {
			t.Fatalf("with a token: status is %s: %s", response.Status, body)
		}
		locations = append(locations, response.Header.Get("Location"))
	}
	for i, want := range []int{http.StatusNotFound, http.StatusOK} {
		if response, _ := request(t, http.MethodDelete, httpOf(c)+locations[i], ""); response.StatusCode != want {
			t.Errorf("session %d: status is %s, expected %d", i, response.Status, want)
		}
	}
}
