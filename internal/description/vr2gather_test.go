package description

import (
	"errors"
	"strings"
	"testing"

	"github.com/pion/interceptor"
	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// offerToPeer is an offer with a line for sound and one for a tile that the peer sends, and one for a tile that it
// receives.
func offerToPeer() *Description {
	d := &Description{
		SessionID: 1, Version: 1,
		Transport: Transport{
			Ufrag: "abcd", Password: "abcdefghijklmnopqrstuv", Fingerprint: "sha-256 " + strings.Repeat("AB:", 31) +
				"AB", Role: RoleActpass,
			Candidates: []string{
				"candidate:1 1 udp 2130706431 10.8.0.1 7882 typ host",
				"candidate:2 1 tcp 1671430143 10.8.0.1 7882 typ host tcptype passive",
			},
		},
	}
	for i, kind := range []volumetric.Kind{volumetric.KindAudio, volumetric.KindVideo, volumetric.KindVideo} {
		l := Line{MID: string(rune('0' + i)), Kind: kind, Direction: DirectionRecvOnly}
		l.Codecs, l.Extensions = Offered(kind)
		d.Lines = append(d.Lines, l)
	}
	last := &d.Lines[2]
	last.CongestionFeedback = true
	last.Direction, last.Streams, last.Stream = DirectionSendOnly, Streams{SSRC: 11, Retransmission: 12}, "video-slot-0"
	return d
}

func overUDP(candidate string) bool { return strings.Contains(candidate, " udp ") }

// TestForVR2Gather checks the exact lines that a VR2Gather peer reads.
func TestForVR2Gather(t *testing.T) {
	text, err := ForVR2Gather(offerToPeer().Marshal(), map[string]string{"2": "0 video_7_0"}, overUDP)
	if err != nil {
		t.Fatal(err)
	}
	_, lines, _ := strings.Cut(strings.ReplaceAll(text, "\r\n", "\n"), "m=audio")
	want := ` 9 UDP/TLS/RTP/SAVPF 6
c=IN IP4 0.0.0.0
a=mid:0
a=ice-ufrag:abcd
a=ice-pwd:abcdefghijklmnopqrstuv
a=fingerprint:sha-256 ` + strings.Repeat("AB:", 31) + `AB
a=candidate:1 1 udp 2130706431 10.8.0.1 7882 typ host
a=setup:actpass
a=recvonly
a=rtcp-mux
a=rtcp-rsize
a=extmap:1 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
a=rtpmap:6 pcm/90000
a=rtcp-fb:6 transport-cc
m=video 9 UDP/TLS/RTP/SAVPF 5
c=IN IP4 0.0.0.0
a=mid:1
a=setup:actpass
a=recvonly
a=rtcp-mux
a=rtcp-rsize
a=extmap:1 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
a=rtpmap:5 pcm/90000
a=rtcp-fb:5 transport-cc
m=video 9 UDP/TLS/RTP/SAVPF 5
c=IN IP4 0.0.0.0
a=mid:2
a=setup:actpass
a=sendonly
a=rtcp-mux
a=rtcp-rsize
a=extmap:1 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
a=rtpmap:5 pcm/90000
a=rtcp-fb:5 transport-cc
a=msid:0 video_7_0
a=ssrc:11 cname:0
`
	if lines != want {
		t.Errorf("got\n%s\nexpected\n%s", lines, want)
	}
}

// peerOfPion returns a peer connection with the codecs of VR2Gather's peer, and its first two tracks.
func peerOfPion(t *testing.T, numbered bool) *webrtc.PeerConnection {
	t.Helper()
	engine := &webrtc.MediaEngine{}
	if err := engine.RegisterDefaultCodecs(); err != nil {
		t.Fatal(err)
	}
	capabilities := map[webrtc.RTPCodecType]webrtc.RTPCodecCapability{
		webrtc.RTPCodecTypeAudio: {MimeType: "audio/pcm", ClockRate: 90000},
		webrtc.RTPCodecTypeVideo: {MimeType: "video/pcm", ClockRate: 90000},
	}
	for kind, number := range map[webrtc.RTPCodecType]webrtc.PayloadType{webrtc.RTPCodecTypeVideo: 5,
		webrtc.RTPCodecTypeAudio: 6} {
		codec := webrtc.RTPCodecParameters{RTPCodecCapability: capabilities[kind], PayloadType: number}
		if err := engine.RegisterCodec(codec, kind); err != nil {
			t.Fatal(err)
		}
		if numbered {
			if err := engine.RegisterHeaderExtension(webrtc.RTPHeaderExtensionCapability{URI: TransportWideCC},
				kind); err != nil {
				t.Fatal(err)
			}
		}
	}
	pc, err := webrtc.NewAPI(webrtc.WithMediaEngine(engine),
		webrtc.WithInterceptorRegistry(&interceptor.Registry{})).NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pc.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, track := range []struct {
		kind       webrtc.RTPCodecType
		id, stream string
	}{{webrtc.RTPCodecTypeAudio, "audio_3", "99"}, {webrtc.RTPCodecTypeVideo, "video_3_0_0", "0"}} {
		local, err := webrtc.NewTrackLocalStaticRTP(capabilities[track.kind], track.id, track.stream)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pc.AddTrack(local); err != nil {
			t.Fatal(err)
		}
	}
	return pc
}

// answerOf returns a peer's answer to an offer for VR2Gather.
func answerOf(t *testing.T, pc *webrtc.PeerConnection, offer string) string {
	t.Helper()
	if err := pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}); err != nil {
		t.Fatal(err)
	}
	answer, err := pc.CreateAnswer(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := pc.SetLocalDescription(answer); err != nil {
		t.Fatal(err)
	}
	return answer.SDP
}

// TestFromVR2Gather lets a VR2Gather-like peer answer: the converted answer fits the original offer, and has the
// identifiers of the peer's streams.
func TestFromVR2Gather(t *testing.T) {
	offer := offerToPeer()
	text, err := ForVR2Gather(offer.Marshal(), map[string]string{"2": "0 video_7_0"}, overUDP)
	if err != nil {
		t.Fatal(err)
	}
	answer, streams, err := FromVR2Gather(answerOf(t, peerOfPion(t, true), text))
	if err != nil {
		t.Fatal(err)
	}
	read, err := Parse(answer)
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckAnswer(offer, read); err != nil {
		t.Errorf("%v\n%s", err, answer)
	}
	if len(streams) != 2 || streams["0"] != "99 audio_3" || streams["1"] != "0 video_3_0_0" {
		t.Errorf("streams are %v", streams)
	}
	for _, l := range read.Lines {
		if l.Codecs[0].Retransmission != 0 || l.Direction.Sends() != (l.Streams.SSRC != 0) {
			t.Errorf("line %+v", l)
		}
	}
	bare := answerOf(t, peerOfPion(t, false), text)
	if _, _, err := FromVR2Gather(bare); !errors.Is(err, ErrDescription) ||
		!strings.Contains(err.Error(), "transport-wide") {
		t.Errorf("without numbers: %v", err)
	}
	other := strings.ReplaceAll(bare, "pcm/90000", "pcm/8000")
	if _, _, err := FromVR2Gather(other); !errors.Is(err, ErrDescription) ||
		!strings.Contains(err.Error(), "payload type") {
		t.Errorf("with another codec: %v", err)
	}
}

// FuzzFromVR2Gather checks that any answer of a peer is converted to a valid description, or refused.
func FuzzFromVR2Gather(f *testing.F) {
	offer, err := ForVR2Gather(offerToPeer().Marshal(), nil, overUDP)
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{offer, strings.ReplaceAll(offer, "recvonly", "sendonly"), chromeAnswer, "v=0\r\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		answer, _, err := FromVR2Gather(text)
		if err == nil {
			_, err = Parse(answer)
		}
		if err != nil && !errors.Is(err, ErrDescription) {
			t.Fatalf("got %v, expected ErrDescription", err)
		}
		if err != nil && answer != "" {
			t.Fatalf("%v in what was made of it:\n%s", err, answer)
		}
	})
}
