package vr2gather

import (
	"errors"
	"strings"
	"testing"

	"github.com/pion/interceptor"
	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// offerToPeer returns an offer with an audio line and a tile line on which the peer sends, and a tile line on which it
// receives.
func offerToPeer() *description.Description {
	d := &description.Description{
		SessionID: 1, Version: 1,
		Transport: description.Transport{
			Ufrag: "abcd", Password: "abcdefghijklmnopqrstuv", Fingerprint: "sha-256 " + strings.Repeat("AB:", 31) +
				"AB", Role: description.RoleActpass,
			Candidates: []string{
				"candidate:1 1 udp 2130706431 10.8.0.1 7882 typ host",
				"candidate:2 1 tcp 1671430143 10.8.0.1 7882 typ host tcptype passive",
			},
		},
	}
	for i, kind := range []volumetric.Kind{volumetric.KindAudio, volumetric.KindVideo, volumetric.KindVideo} {
		l := description.Line{MID: string(rune('0' + i)), Kind: kind, Direction: description.DirectionRecvOnly}
		l.Codecs, l.Extensions = description.Offered(kind)
		d.Lines = append(d.Lines, l)
	}
	last := &d.Lines[2]
	last.CongestionFeedback = true
	last.Direction, last.Streams, last.Stream = description.DirectionSendOnly,
		description.Streams{SSRC: 11, Retransmission: 12}, "video-slot-0"
	return d
}

func overUDP(candidate string) bool { return strings.Contains(candidate, " udp ") }

// TestToPeer checks the exact lines that a VR2Gather peer reads.
func TestToPeer(t *testing.T) {
	text, err := toPeer(offerToPeer().Marshal(), map[string]string{"2": "0 video_7_0"}, overUDP)
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

// peerOfPion returns a peer connection with the codecs and the first two tracks of a VR2Gather peer.
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
			if err := engine.RegisterHeaderExtension(
				webrtc.RTPHeaderExtensionCapability{URI: description.TransportWideCC}, kind); err != nil {
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

// TestFromPeer checks that the converted answer of a VR2Gather peer fits the original offer and has the identifiers of
// the peer's streams.
func TestFromPeer(t *testing.T) {
	offer := offerToPeer()
	text, err := toPeer(offer.Marshal(), map[string]string{"2": "0 video_7_0"}, overUDP)
	if err != nil {
		t.Fatal(err)
	}
	answer, streams, err := fromPeer(answerOf(t, peerOfPion(t, true), text))
	if err != nil {
		t.Fatal(err)
	}
	read, err := description.Parse(answer)
	if err != nil {
		t.Fatal(err)
	}
	if err := description.CheckAnswer(offer, read); err != nil {
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
	if _, _, err := fromPeer(bare); !errors.Is(err, description.ErrDescription) ||
		!strings.Contains(err.Error(), "transport-wide") {
		t.Errorf("without numbers: %v", err)
	}
	other := strings.ReplaceAll(bare, "pcm/90000", "pcm/8000")
	if _, _, err := fromPeer(other); !errors.Is(err, description.ErrDescription) ||
		!strings.Contains(err.Error(), "payload type") {
		t.Errorf("with another codec: %v", err)
	}
}

// browserAnswer is a browser's answer to two lines, with other formats and one refused line.
var browserAnswer = strings.ReplaceAll(`v=0
o=- 8712839017234502134 2 IN IP4 127.0.0.1
s=-
t=0 0
a=group:BUNDLE 0
a=extmap-allow-mixed
a=msid-semantic: WMS 0f64b7a2
m=video 58437 UDP/TLS/RTP/SAVPF 100 101
c=IN IP4 192.0.2.7
a=rtcp:9 IN IP4 0.0.0.0
a=candidate:842163049 1 udp 1677729535 192.0.2.7 58437 typ srflx raddr 0.0.0.0 rport 0 generation 0 network-cost 999
a=ice-ufrag:k7Qx
a=ice-pwd:VxkV0u0rcJ1G1+f9ZJ0uSv2B
a=ice-options:trickle
a=fingerprint:sha-256 `+strings.Repeat("AB:", 31)+`AB
a=setup:active
a=mid:0
a=extmap:1 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
a=sendonly
a=msid:0f64b7a2 2f1b4b6e
a=rtcp-mux
a=rtcp-rsize
a=rtpmap:100 VP8/90000
a=rtcp-fb:100 transport-cc
a=rtcp-fb:100 ccm fir
a=rtcp-fb:100 nack
a=rtcp-fb:100 nack pli
a=rtpmap:101 rtx/90000
a=fmtp:101 apt=100
a=ssrc-group:FID 3570614608 4130498341
a=ssrc:3570614608 cname:4TOk42mSjXCkVIa6
a=ssrc:4130498341 cname:4TOk42mSjXCkVIa6
m=audio 0 UDP/TLS/RTP/SAVPF 111
c=IN IP4 0.0.0.0
a=inactive
a=mid:1
`, "\n", "\r\n")

// FuzzFromPeer checks that any answer of a peer is converted to a valid description or refused.
func FuzzFromPeer(f *testing.F) {
	offer, err := toPeer(offerToPeer().Marshal(), nil, overUDP)
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{offer, strings.ReplaceAll(offer, "recvonly", "sendonly"), browserAnswer, "v=0\r\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		answer, _, err := fromPeer(text)
		if err == nil {
			_, err = description.Parse(answer)
		}
		if err != nil && !errors.Is(err, description.ErrDescription) {
			t.Fatalf("got %v, expected ErrDescription", err)
		}
		if err != nil && answer != "" {
			t.Fatalf("%v in the result:\n%s", err, answer)
		}
	})
}
