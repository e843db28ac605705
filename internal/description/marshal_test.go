package description

import (
	"testing"

	"github.com/pion/sdp/v3"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestMarshal checks the whole text of a small offer: a sending line, a rejected one and a data channel.
func TestMarshal(t *testing.T) {
	codecs, extensions := Offered(volumetric.KindVideo)
	transport := plausible()
	transport.EndOfCandidates = true
	d := &Description{SessionID: 4711, Version: 2, Transport: transport, Lines: []Line{
		{MID: "0", Kind: volumetric.KindAudio, Direction: DirectionInactive, Rejected: true},
		{
			MID: "1", Kind: volumetric.KindVideo, Direction: DirectionSendOnly, Codecs: codecs[3:],
			Extensions: extensions,
			Streams:    Streams{SSRC: 11, Retransmission: 12}, Stream: "stream track",
		},
		{MID: "2", Kind: "application", Direction: DirectionInactive, Rejected: true},
		{MID: "3", Kind: volumetric.KindAudio, Direction: DirectionSendRecv, Codecs: audioCodecs,
			Streams: Streams{SSRC: 13}},
	}}
	want := crlf(`
v=0
o=- 4711 2 IN IP4 0.0.0.0
s=-
t=0 0
a=group:BUNDLE 1 3
a=msid-semantic:WMS *
a=extmap-allow-mixed
a=ice-options:trickle
a=ice-ufrag:QOhhJarxWaTTuEgU
a=ice-pwd:wtIDpYxHiZwzKbSYZIbIKUBGyBHKTLnF
a=fingerprint:` + transport.Fingerprint + `
m=audio 0 UDP/TLS/RTP/SAVPF 0
c=IN IP4 0.0.0.0
a=mid:0
a=inactive
m=video 9 UDP/TLS/RTP/SAVPF 102 103
c=IN IP4 0.0.0.0
a=mid:1
a=ice-ufrag:QOhhJarxWaTTuEgU
a=ice-pwd:wtIDpYxHiZwzKbSYZIbIKUBGyBHKTLnF
a=fingerprint:` + transport.Fingerprint + `
a=candidate:1 1 udp 2130706431 127.0.0.1 7882 typ host
a=candidate:2 1 tcp 1671430143 127.0.0.1 7882 typ host tcptype passive
a=end-of-candidates
a=setup:actpass
a=sendonly
a=rtcp-mux
a=rtcp-rsize
a=extmap:1 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
a=rtpmap:102 H264/90000
a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f
a=rtcp-fb:102 nack
a=rtcp-fb:102 nack pli
a=rtcp-fb:102 ccm fir
a=rtcp-fb:102 transport-cc
a=rtcp-fb:102 rrtr
a=rtpmap:103 rtx/90000
a=fmtp:103 apt=102
a=msid:stream track
a=ssrc-group:FID 11 12
a=ssrc:11 cname:stream
a=ssrc:12 cname:stream
m=application 0 UDP/DTLS/SCTP webrtc-datachannel
c=IN IP4 0.0.0.0
a=mid:2
a=inactive
m=audio 9 UDP/TLS/RTP/SAVPF 111 113
c=IN IP4 0.0.0.0
a=mid:3
a=setup:actpass
a=sendrecv
a=rtcp-mux
a=rtcp-rsize
a=rtpmap:111 opus/48000/2
a=fmtp:111 minptime=10;useinbandfec=1
a=rtcp-fb:111 transport-cc
a=rtpmap:113 opaque/48000
a=rtcp-fb:113 transport-cc
a=ssrc:13 cname:-
`)
	if got := d.Marshal(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestHundredsOfLinesFitAMessage compares the size of an offer with the limit of a signalling message, 2 MiB, and with
// the initial capacity of Marshal.
func TestHundredsOfLinesFitAMessage(t *testing.T) {
	d := offerOfHundreds()
	size := len(d.Marshal())
	t.Logf("%d lines: %d bytes", len(d.Lines), size)
	if size > sessionSize+lineSize*len(d.Lines) {
		t.Errorf("%d lines take %d bytes, more than %d each", len(d.Lines), size, lineSize)
	}
}

func BenchmarkMarshal(b *testing.B) {
	d := offerOfHundreds()
	b.ReportAllocs()
	for b.Loop() {
		_ = d.Marshal()
	}
	b.ReportMetric(float64(len(d.Marshal())), "B/description")
}

func BenchmarkParse(b *testing.B) {
	text := offerOfHundreds().Marshal()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPion parses the same text into Pion's structs and writes them, which is a part of the work of Parse and
// Marshal.
func BenchmarkPion(b *testing.B) {
	text := offerOfHundreds().Marshal()
	var parsed sdp.SessionDescription
	if err := parsed.UnmarshalString(text); err != nil {
		b.Fatal(err)
	}
	b.Run("marshal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := parsed.Marshal(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var parsed sdp.SessionDescription
			if err := parsed.UnmarshalString(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
