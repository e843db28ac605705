package description

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// simulcastOffer is an offer of an encoder with three encodings, the best first, and sound. Its H264 has the main
// profile.
const simulcastOffer = "v=0\r\no=rtc 1 0 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n" +
	"a=setup:actpass\r\na=ice-ufrag:E2Fr\r\na=ice-pwd:OpQzg1PAwUdeOB244chlgd\r\n" +
	"a=fingerprint:sha-256 EF:53:C9:F2:E0:A0:4F:1D:5E:99:4C:20:B8:D7:DE:21:3B:58:15:C4:E5:88:87:46:65:27:F7:3B:C6:" +
	"DC:EF:3B\r\n" +
	"m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 0.0.0.0\r\na=mid:0\r\na=sendonly\r\na=rtcp-mux\r\n" +
	"a=rtpmap:111 opus/48000/2\r\na=ssrc:7 cname:c\r\na=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid\r\n" +
	"m=video 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=mid:1\r\na=sendonly\r\na=rtcp-mux\r\n" +
	"a=rtpmap:96 H264/90000\r\na=fmtp:96 profile-level-id=4d001f;packetization-mode=1;level-asymmetry-allowed=1\r\n" +
	"a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid\r\na=extmap:2 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id\r\n" +
	"a=ssrc:8 cname:c\r\na=rid:0 send pt=96;max-width=1280;max-height=720\r\na=rid:1 send max-br=300000\r\n" +
	"a=rid:2 send\r\na=simulcast:send 0;~1;2\r\n"

func TestForwarderAnswersSimulcast(t *testing.T) {
	offer, err := Parse(simulcastOffer)
	if err != nil {
		t.Fatal(err)
	}
	layers := []Layer{{ID: "0", MaxWidth: 1280, MaxHeight: 720}, {ID: "1", MaxBitrate: 300000}, {ID: "2"}}
	if got := offer.Lines[1].Layers; !reflect.DeepEqual(got, layers) {
		t.Errorf("the encodings are %+v, expected %+v", got, layers)
	}
	answer, err := AnswerAsForwarder(offer, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Transport.Ufrag, answer.Transport.Password = "abcd", strings.Repeat("x", minPassword)
	answer.Transport.Fingerprint = offer.Transport.Fingerprint
	if err := CheckAnswer(offer, answer); err != nil {
		t.Error(err)
	}
	text := answer.Marshal()
	for _, want := range []string{
		"a=simulcast:recv 0;1;2\r\n", "a=rid:0 recv max-width=1280;max-height=720\r\n", "a=rid:2 recv\r\n",
		"a=fmtp:96 profile-level-id=4d001f;packetization-mode=1", "a=extmap:2 " + LayerExtension + "\r\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the answer lacks %q:\n%s", want, text)
		}
	}
	if len(answer.Lines[0].Extensions) != 0 {
		t.Errorf("the line whose SSRC is known has the extensions %v", answer.Lines[0].Extensions)
	}
	endpoint, err := Answer(offer, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !endpoint.Lines[1].Rejected {
		t.Error("an endpoint takes the main profile of H264")
	}
}

func TestInvalidEncodings(t *testing.T) {
	for name, change := range map[string][2]string{
		"an id without a=rid": {"a=rid:2 send\r\n", ""},
		"an id twice":         {"send 0;~1;2", "send 0;1;1"},
		"a long id":           {"2", strings.Repeat("2", maxLayerID+1)},
		"an id with a slash":  {"a=rid:2 send\r\na=simulcast:send 0;~1;2", "a=rid:/ send\r\na=simulcast:send /"},
		"nine encodings": {"a=rid:2 send\r\n", "a=rid:2 send\r\na=rid:3 send\r\na=rid:4 send\r\na=rid:5 send\r\n" +
			"a=rid:6 send\r\na=rid:7 send\r\na=rid:8 send\r\n"},
	} {
		video := strings.Index(simulcastOffer, "a=rid")
		text := simulcastOffer[:video] + strings.ReplaceAll(simulcastOffer[video:], change[0], change[1])
		if _, err := Parse(text); !errors.Is(err, ErrDescription) {
			t.Errorf("%s: error is %v, expected ErrDescription", name, err)
		}
	}
}

// TestForwarderTakesKnownCodecsOnly checks that a forwarder rejects what a room cannot carry.
func TestForwarderTakesKnownCodecsOnly(t *testing.T) {
	offer, err := Parse(strings.ReplaceAll(simulcastOffer, "packetization-mode=1", "packetization-mode=0"))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := AnswerAsForwarder(offer, nil)
	if err != nil {
		t.Fatal(err)
	}
	sound, video := answer.Lines[0], answer.Lines[1]
	if sound.Rejected || sound.Codecs[0].MIMEType != volumetric.MIMEOpus || !video.Rejected {
		t.Errorf("the answer is %+v", answer.Lines)
	}
}
