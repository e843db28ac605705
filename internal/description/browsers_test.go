package description

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// crlf converts line ends to those of descriptions.
func crlf(text string) string {
	return strings.ReplaceAll(strings.TrimPrefix(text, "\n"), "\n", "\r\n")
}

const browserFingerprint = "sha-256 7B:8B:F0:65:5F:78:E2:51:3B:AC:6F:F3:" +
	"3F:46:1B:35:DC:B8:5F:64:1A:24:C2:43:F0:A1:58:D0:A1:2C:19:08"

// chromeAnswer is an answer to offerOfFour in Chrome's format: Chrome supports neither volumetric nor opaque video.
var chromeAnswer = crlf(`
v=0
o=- 8712839017234502134 2 IN IP4 127.0.0.1
s=-
t=0 0
a=group:BUNDLE 0 1 2 3
a=extmap-allow-mixed
a=msid-semantic: WMS 0f64b7a2-51d5-4a54-8e0b-5b3b9c2f7a11
m=video 58437 UDP/TLS/RTP/SAVPF 100 101 102 103
c=IN IP4 192.0.2.7
a=rtcp:9 IN IP4 0.0.0.0
a=candidate:3470996711 1 udp 2113937151 5d1d8f3c-6a3c-4f25-9a3d-0b8f4f1e3f6b.local 58437 typ host generation 0 network-cost 999
a=candidate:842163049 1 udp 1677729535 192.0.2.7 58437 typ srflx raddr 0.0.0.0 rport 0 generation 0 network-cost 999
a=ice-ufrag:k7Qx
a=ice-pwd:VxkV0u0rcJ1G1+f9ZJ0uSv2B
a=ice-options:trickle
a=fingerprint:` + browserFingerprint + `
a=setup:active
a=mid:0
a=extmap:1 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
a=sendonly
a=msid:0f64b7a2-51d5-4a54-8e0b-5b3b9c2f7a11 2f1b4b6e-7a3f-4ad5-a9fd-0c4c4d6f6c11
a=rtcp-mux
a=rtcp-rsize
a=rtpmap:100 VP8/90000
a=rtcp-fb:100 transport-cc
a=rtcp-fb:100 ccm fir
a=rtcp-fb:100 nack
a=rtcp-fb:100 nack pli
a=rtpmap:101 rtx/90000
a=fmtp:101 apt=100
a=rtpmap:102 H264/90000
a=rtcp-fb:102 transport-cc
a=rtcp-fb:102 ccm fir
a=rtcp-fb:102 nack
a=rtcp-fb:102 nack pli
a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f
a=rtpmap:103 rtx/90000
a=fmtp:103 apt=102
a=ssrc-group:FID 3570614608 4130498341
a=ssrc:3570614608 cname:4TOk42mSjXCkVIa6
a=ssrc:3570614608 msid:0f64b7a2-51d5-4a54-8e0b-5b3b9c2f7a11 2f1b4b6e-7a3f-4ad5-a9fd-0c4c4d6f6c11
a=ssrc:4130498341 cname:4TOk42mSjXCkVIa6
a=ssrc:4130498341 msid:0f64b7a2-51d5-4a54-8e0b-5b3b9c2f7a11 2f1b4b6e-7a3f-4ad5-a9fd-0c4c4d6f6c11
m=video 9 UDP/TLS/RTP/SAVPF 100 101 102 103
c=IN IP4 0.0.0.0
a=rtcp:9 IN IP4 0.0.0.0
a=ice-ufrag:k7Qx
a=ice-pwd:VxkV0u0rcJ1G1+f9ZJ0uSv2B
a=ice-options:trickle
a=fingerprint:` + browserFingerprint + `
a=setup:active
a=mid:1
a=extmap:1 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
a=recvonly
a=rtcp-mux
a=rtcp-rsize
a=rtpmap:100 VP8/90000
a=rtcp-fb:100 transport-cc
a=rtcp-fb:100 ccm fir
a=rtcp-fb:100 nack
a=rtcp-fb:100 nack pli
a=rtpmap:101 rtx/90000
a=fmtp:101 apt=100
a=rtpmap:102 H264/90000
a=rtcp-fb:102 nack
a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f
a=rtpmap:103 rtx/90000
a=fmtp:103 apt=102
m=audio 9 UDP/TLS/RTP/SAVPF 111
c=IN IP4 0.0.0.0
a=rtcp:9 IN IP4 0.0.0.0
a=ice-ufrag:k7Qx
a=ice-pwd:VxkV0u0rcJ1G1+f9ZJ0uSv2B
a=ice-options:trickle
a=fingerprint:` + browserFingerprint + `
a=setup:active
a=mid:2
a=extmap:1 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
a=inactive
a=rtcp-mux
a=rtcp-rsize
a=rtpmap:111 opus/48000/2
a=rtcp-fb:111 transport-cc
a=fmtp:111 minptime=10;useinbandfec=1
m=audio 9 UDP/TLS/RTP/SAVPF 111
c=IN IP4 0.0.0.0
a=rtcp:9 IN IP4 0.0.0.0
a=ice-ufrag:k7Qx
a=ice-pwd:VxkV0u0rcJ1G1+f9ZJ0uSv2B
a=ice-options:trickle
a=fingerprint:` + browserFingerprint + `
a=setup:active
a=mid:3
a=recvonly
a=rtcp-mux
a=rtcp-rsize
a=rtpmap:111 opus/48000/2
a=fmtp:111 minptime=10;useinbandfec=1
`)

// firefoxAnswer is an answer to offerOfFour in Firefox's format: the fingerprint at session level, credentials and
// candidates in every line, no mid on the rejected line.
var firefoxAnswer = crlf(`
v=0
o=mozilla...THIS_IS_SDPARTA-132.0 4611686018427387904 0 IN IP4 0.0.0.0
s=-
t=0 0
a=fingerprint:` + browserFingerprint + `
a=group:BUNDLE 0 1 3
a=ice-options:trickle
a=msid-semantic:WMS *
m=video 51372 UDP/TLS/RTP/SAVPF 100 101 102 103
c=IN IP4 192.0.2.9
a=candidate:0 1 UDP 2122252543 192.0.2.9 51372 typ host
a=candidate:2 1 TCP 2105524479 192.0.2.9 9 typ host tcptype active
a=sendonly
a=end-of-candidates
a=extmap:1 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
a=fmtp:102 profile-level-id=42e01f;level-asymmetry-allowed=1;packetization-mode=1
a=fmtp:100 max-fs=12288;max-fr=60
a=fmtp:101 apt=100
a=fmtp:103 apt=102
a=ice-pwd:6a0c1dbe3ce9ee1e6d6cd5ff1a9d5a2e
a=ice-ufrag:9d1c6d2b
a=mid:0
a=msid:{5b5f7a8e-04cb-43cf-a5f9-1f9b5b0f4f01} {a0b9c3d6-8b6a-4a1d-9a3e-9e0b3a3a2f02}
a=rtcp-fb:100 nack
a=rtcp-fb:100 nack pli
a=rtcp-fb:100 ccm fir
a=rtcp-fb:100 transport-cc
a=rtcp-fb:102 nack
a=rtcp-fb:102 nack pli
a=rtcp-fb:102 ccm fir
a=rtcp-fb:102 transport-cc
a=rtcp-mux
a=rtcp-rsize
a=rtpmap:100 VP8/90000
a=rtpmap:101 rtx/90000
a=rtpmap:102 H264/90000
a=rtpmap:103 rtx/90000
a=setup:active
a=ssrc:1867712345 cname:{c5d8c2a5-6f1c-4c1a-b5ee-6b9a2f0d1b03}
a=ssrc:2391873412 cname:{c5d8c2a5-6f1c-4c1a-b5ee-6b9a2f0d1b03}
a=ssrc-group:FID 1867712345 2391873412
m=video 51372 UDP/TLS/RTP/SAVPF 100 101
c=IN IP4 192.0.2.9
a=candidate:0 1 UDP 2122252543 192.0.2.9 51372 typ host
a=candidate:2 1 TCP 2105524479 192.0.2.9 9 typ host tcptype active
a=recvonly
a=end-of-candidates
a=fmtp:100 max-fs=12288;max-fr=60
a=fmtp:101 apt=100
a=ice-pwd:6a0c1dbe3ce9ee1e6d6cd5ff1a9d5a2e
a=ice-ufrag:9d1c6d2b
a=mid:1
a=rtcp-fb:100 nack
a=rtcp-mux
a=rtcp-rsize
a=rtpmap:100 VP8/90000
a=rtpmap:101 rtx/90000
a=setup:active
a=ssrc:3034109832 cname:{c5d8c2a5-6f1c-4c1a-b5ee-6b9a2f0d1b03}
m=audio 0 UDP/TLS/RTP/SAVPF 0
c=IN IP4 0.0.0.0
a=inactive
a=rtpmap:0 PCMU/8000
m=audio 51372 UDP/TLS/RTP/SAVPF 111
c=IN IP4 192.0.2.9
a=recvonly
a=fmtp:111 maxplaybackrate=48000;stereo=1;useinbandfec=1
a=ice-pwd:6a0c1dbe3ce9ee1e6d6cd5ff1a9d5a2e
a=ice-ufrag:9d1c6d2b
a=mid:3
a=rtcp-mux
a=rtpmap:111 opus/48000/2
a=setup:active
a=ssrc:1207418810 cname:{c5d8c2a5-6f1c-4c1a-b5ee-6b9a2f0d1b03}
`)

// chromeOffer is an offer in Chrome's format: a data channel, video in three resolutions, and audio with codecs that
// need no a=rtpmap.
var chromeOffer = crlf(`
v=0
o=- 3327975756663609975 2 IN IP4 127.0.0.1
s=-
t=0 0
a=group:BUNDLE data v a
a=extmap-allow-mixed
a=msid-semantic: WMS
m=application 9 UDP/DTLS/SCTP webrtc-datachannel
c=IN IP4 0.0.0.0
a=ice-ufrag:5gAx
a=ice-pwd:UaOtA7vsDocYINrXSTPWphUa
a=ice-options:trickle
a=fingerprint:` + browserFingerprint + `
a=setup:actpass
a=mid:data
a=sctp-port:5000
a=max-message-size:262144
m=video 9 UDP/TLS/RTP/SAVPF 96 97 45 46 106 107 108 109 124
c=IN IP4 0.0.0.0
a=ice-ufrag:other
a=ice-pwd:otherotherotherotherother
a=fingerprint:` + browserFingerprint + `
a=setup:actpass
a=mid:v
a=extmap:14/sendonly urn:ietf:params:rtp-hdrext:toffset
a=extmap:4/recvonly http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
a=sendonly
a=msid:- 2f1b4b6e-7a3f-4ad5-a9fd-0c4c4d6f6c11
a=rtcp-mux
a=rtcp-rsize
a=rtpmap:96 VP8/90000
a=rtcp-fb:* nack
a=rtcp-fb:96 goog-remb
a=rtcp-fb:96 transport-cc
a=rtcp-fb:96 nack pli
a=rtpmap:97 rtx/90000
a=fmtp:97 apt=96
a=rtpmap:45 AV1/90000
a=rtpmap:46 rtx/90000
a=fmtp:46 apt=45
a=rtpmap:106 H264/90000
a=fmtp:106 level-asymmetry-allowed=1;packetization-mode=0;profile-level-id=42e01f
a=rtpmap:107 rtx/90000
a=fmtp:107 apt=106
a=rtpmap:108 H264/90000
a=fmtp:108 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42E034
a=rtpmap:109 rtx/90000
a=fmtp:109 rtx-time=3000; apt=108
a=rtpmap:124 red/90000
a=rid:q send
a=rid:h send
a=rid:f send
a=simulcast:send q;h;f
m=audio 9 UDP/TLS/RTP/SAVPF 0 8 63 112
c=IN IP4 0.0.0.0
a=ice-ufrag:5gAx
a=ice-pwd:UaOtA7vsDocYINrXSTPWphUa
a=setup:actpass
a=mid:a
a=recvonly
a=rtcp-mux
a=rtpmap:63 red/48000/2
a=fmtp:63 112/112
a=rtpmap:112 opus/48000/2
a=fmtp:112 minptime=10;useinbandfec=1
`)

func TestAnswersOfBrowsers(t *testing.T) {
	for _, test := range []struct {
		name, text, ufrag string
		candidates        int
		end               bool
		streams           []Streams
		codecs            []int
		stream            string
	}{
		{
			"Chrome", chromeAnswer, "k7Qx", 2, false, []Streams{{3570614608, 4130498341}, {}, {}, {}},
			[]int{2, 2, 1, 1},
			"0f64b7a2-51d5-4a54-8e0b-5b3b9c2f7a11 2f1b4b6e-7a3f-4ad5-a9fd-0c4c4d6f6c11",
		},
		{
			"Firefox", firefoxAnswer, "9d1c6d2b", 2, true, []Streams{{1867712345, 2391873412}, {}, {}, {}},
			[]int{2, 1, 0, 1},
			"{5b5f7a8e-04cb-43cf-a5f9-1f9b5b0f4f01} {a0b9c3d6-8b6a-4a1d-9a3e-9e0b3a3a2f02}",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer := parsed(t, test.text)
			// Browsers that do not know RFC 8888 ignore that it is offered.
			for _, offer := range []*Description{offerOfFour(), offerOfBothFeedbacks(everyLine)} {
				if err := CheckAnswer(offer, answer); err != nil {
					t.Error(err)
				}
			}
			if answer.ReportsByStream() || answer.AcceptsReportsByStream() {
				t.Error("the answer counts as one with RFC 8888")
			}
			transport := answer.Transport
			if transport.Ufrag != test.ufrag || transport.Fingerprint != browserFingerprint ||
				transport.Role != RoleActive {
				t.Errorf("transport is %+v", transport)
			}
			if len(transport.Candidates) != test.candidates || transport.EndOfCandidates != test.end {
				t.Errorf("candidates are %q, end is %t", transport.Candidates, transport.EndOfCandidates)
			}
			for i, l := range answer.Lines {
				if l.Streams != test.streams[i] || len(l.Codecs) != test.codecs[i] {
					t.Errorf("line %d has %+v and %d codecs, expected %+v and %d", i, l.Streams, len(l.Codecs),
						test.streams[i], test.codecs[i])
				}
			}
			if answer.Lines[0].Stream != test.stream {
				t.Errorf("stream is %q, expected %q", answer.Lines[0].Stream, test.stream)
			}
			if c := answer.Lines[0].Codecs[0]; c.MIMEType != volumetric.MIMEVP8 || c.Retransmission != 101 ||
				!slices.Contains(c.Feedback, "nack pli") {
				t.Errorf("codec is %+v, expected VP8 with feedback, and retransmissions on 101", c)
			}
		})
	}
}

func TestAnOfferOfABrowser(t *testing.T) {
	offer := parsed(t, chromeOffer)
	if offer.Transport.Ufrag != "5gAx" {
		t.Errorf("ufrag is %q, expected that of the line that the bundle begins with", offer.Transport.Ufrag)
	}
	answer, err := Answer(offer, map[string]Sending{"a": {Streams: Streams{SSRC: 5}, Stream: "s t"}})
	if err != nil {
		t.Fatal(err)
	}
	_, extensions := Offered(volumetric.KindVideo)
	want := []Line{
		{MID: "data", Kind: "application", Direction: DirectionInactive, Rejected: true},
		{
			MID: "v", Kind: volumetric.KindVideo, Direction: DirectionRecvOnly,
			Codecs: []Codec{
				{MIMEType: volumetric.MIMEVP8, ClockRate: 90000, Feedback: []string{"transport-cc", "nack pli", "nack"},
					PayloadType: 96, Retransmission: 97},
				{
					MIMEType: volumetric.MIMEH264, ClockRate: 90000, Feedback: []string{"nack"}, PayloadType: 108,
					Retransmission: 109,
					Format:         "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42E034",
				},
			},
			Extensions: []Extension{{ID: 4, URI: extensions[0].URI}},
		},
		{
			MID: "a", Kind: volumetric.KindAudio, Direction: DirectionSendOnly, Streams: Streams{SSRC: 5},
			Stream: "s t",
			Codecs: []Codec{{MIMEType: volumetric.MIMEOpus, ClockRate: 48000, Channels: 2, PayloadType: 112,
				Format: "minptime=10;useinbandfec=1"}},
		},
	}
	if !reflect.DeepEqual(answer.Lines, want) {
		t.Errorf("got  %+v\nwant %+v", answer.Lines, want)
	}
	if answer.Transport.Role != RoleActive {
		t.Errorf("role is %q, expected active", answer.Transport.Role)
	}
	answer.Transport = plausible()
	text := answer.Marshal()
	for _, line := range []string{"m=application 0 UDP/DTLS/SCTP webrtc-datachannel\r\n", "a=group:BUNDLE v a\r\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("the data channel is not rejected, no %q in\n%s", line, text)
		}
	}
}
