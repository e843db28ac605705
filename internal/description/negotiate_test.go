package description

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestAnswersThatDoNotFit changes the text of a valid answer, which is accepted unchanged.
func TestAnswersThatDoNotFit(t *testing.T) {
	offer := offerOfFour()
	right := answerOfFour(t).Marshal()
	if err := CheckAnswer(offer, parsed(t, right)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		of      func(string) string
		because string
	}{
		{"nothing but the session", rearranged(0), "0 lines, expected the 4 of the offer"},
		{"a line is missing", rearranged(0, 1, 2, 3), "3 lines, expected the 4 of the offer"},
		{"the first line is missing", rearranged(0, 2, 3, 4), "3 lines, expected the 4 of the offer"},
		{"lines without end", appended(manyTimes(40000, "m=video 0 UDP/TLS/RTP/SAVPF 96\r\na=mid:x%d")...),
			"40004 lines, expected the 4"},
		{"swapped lines", rearranged(0, 2, 1, 3, 4), `line 0 (mid "1"): expected mid "0" as in the offer`},
		{"a mid that was not offered", func(text string) string {
			return replaced("a=mid:1\r\n", "a=mid:x\r\n")(replaced("BUNDLE 0 1", "BUNDLE 0 x")(text))
		}, `line 1 (mid "x"): expected mid "1" as in the offer`},
		{"audio for video", replaced("m=video", "m=audio"), `kind is "audio", expected "video"`},
		{"no ICE user name", lacking("a=ice-ufrag"), "no a=ice-ufrag"},
		{"no ICE password", lacking("a=ice-pwd"), "no a=ice-pwd"},
		{"no fingerprint", lacking("a=fingerprint"), "no a=fingerprint"},
		{"no role", lacking("a=setup"), `setup is "" in answer to "actpass"`},
		{"the role of an offer", replaced("a=setup:active", "a=setup:actpass"),
			`setup is "actpass" in answer to "actpass"`},
		{"both send", replaced("a=recvonly", "a=sendrecv"),
			`line 1 (mid "1"): direction is "sendrecv" in answer to "sendonly"`},
		{"both receive", replaced("a=sendonly", "a=recvonly"),
			`line 0 (mid "0"): direction is "recvonly" in answer to "recvonly"`},
		{"a codec that was not offered", replaced("VP8/90000", "VP9/90000"),
			"payload type 100 is video/VP9/90000, expected a codec of the offer"},
		{"a codec under another number", func(text string) string {
			return replaced("111 opus", "112 opus")(replaced("SAVPF 111", "SAVPF 112")(text))
		}, "payload type 112"},
		{"another clock", replaced("opus/48000", "opus/8000"), "payload type 111 is audio/opus/8000"},
		{"mono", replaced("opus/48000/2", "opus/48000"), "payload type 111"},
		{"no codec", lacking("a=rtpmap"), "no codec, expected some of the offer"},
		{"retransmissions of another", func(text string) string {
			return replaced("fmtp:97 apt=96", "fmtp:97 apt=98")(replaced("fmtp:99 apt=98", "fmtp:99 apt=96")(text))
		}, "payload type 99 retransmits 96, expected 97"},
		{"an extension that was not offered", appended("a=extmap:2 urn:x"), `header extension 2 is "urn:x"`},
		{"an extension under another number", replaced("a=extmap:1 ", "a=extmap:2 "), "header extension 2"},
		{"every line is rejected", replaced(" 9 UDP", " 0 UDP"), "no a=ice-ufrag"},
	} {
		err := CheckAnswer(offer, parsed(t, test.of(right)))
		if !errors.Is(err, ErrDescription) || !strings.Contains(err.Error(), test.because) {
			t.Errorf("%s: got %v, expected ErrDescription with %q", test.name, err, test.because)
		}
	}
}

func TestAnswersThatFit(t *testing.T) {
	right := answerOfFour(t).Marshal()
	for name, of := range map[string]func(string) string{
		"fewer codecs":   replaced("SAVPF 96 97 98 99 100 101 102 103", "SAVPF 100"),
		"another format": replaced("minptime=10", "stereo=1"),
		"rejected lines": replaced("m=audio 9", "m=audio 0"),
		"rejected lines without mids": func(text string) string {
			return lacking("a=mid:3")(lacking("a=mid:2")(replaced("m=audio 9", "m=audio 0")(text)))
		},
		"nothing is sent":    replaced("a=sendonly", "a=inactive"),
		"the server of DTLS": replaced("a=setup:active", "a=setup:passive"),
		"no sources":         lacking("a=ssrc"),
	} {
		if err := CheckAnswer(offerOfFour(), parsed(t, of(right))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestALineThatWasOfferedAsRejectedStaysSo(t *testing.T) {
	offer := offerOfFour()
	offer.Lines[1] = Line{MID: "1", Kind: volumetric.KindVideo, Direction: DirectionInactive, Rejected: true}
	if err := CheckAnswer(offer, answerOfFour(t)); !errors.Is(err, ErrDescription) ||
		!strings.Contains(err.Error(), "offered as rejected") {
		t.Errorf("got %v", err)
	}
	answer, err := Answer(offer, nil)
	if err != nil || !reflect.DeepEqual(answer.Lines[1], offer.Lines[1]) {
		t.Errorf("got %+v and %v, expected a rejected line", answer, err)
	}
}

func TestRoles(t *testing.T) {
	for _, test := range []struct {
		offered Role
		fit     []Role
	}{
		{RoleActpass, []Role{RoleActive, RolePassive}},
		{RoleActive, []Role{RolePassive}},
		{RolePassive, []Role{RoleActive}},
	} {
		offer, answer := offerOfFour(), answerOfFour(t)
		offer.Transport.Role = test.offered
		var fit []Role
		for _, role := range []Role{"", RoleActpass, RoleActive, RolePassive} {
			answer.Transport.Role = role
			if CheckAnswer(offer, answer) == nil {
				fit = append(fit, role)
			}
		}
		if !reflect.DeepEqual(fit, test.fit) {
			t.Errorf("%v fit %q, expected %v", fit, test.offered, test.fit)
		}
		made, err := Answer(offer, nil)
		if err != nil || made.Transport.Role != test.fit[0] {
			t.Errorf("answered %+v and %v to %q, expected %q", made, err, test.offered, test.fit[0])
		}
	}
}

func TestDirections(t *testing.T) {
	for _, test := range []struct{ offered, silent, sending Direction }{
		{DirectionSendRecv, DirectionRecvOnly, DirectionSendRecv},
		{DirectionSendOnly, DirectionRecvOnly, DirectionRecvOnly},
		{DirectionRecvOnly, DirectionInactive, DirectionSendOnly},
		{DirectionInactive, DirectionInactive, DirectionInactive},
	} {
		offer := &Description{Transport: plausible(), Lines: []Line{offered(0, volumetric.KindVideo, test.offered)}}
		sent := Sending{Streams: Streams{SSRC: 1, Retransmission: 2}, Stream: "s t"}
		for _, round := range []struct {
			sending map[string]Sending
			want    Direction
		}{
			{nil, test.silent}, {map[string]Sending{"0": {}}, test.silent},
			{map[string]Sending{"0": sent}, test.sending},
		} {
			answer, err := Answer(offer, round.sending)
			if err != nil {
				t.Fatal(err)
			}
			l := answer.Lines[0]
			if l.Direction != round.want || (l.Streams == sent.Streams && l.Stream == sent.Stream) !=
				l.Direction.Sends() {
				t.Errorf("answered %+v to %q, sending %v; expected %q", l, test.offered, round.sending, round.want)
			}
			answer.Transport = plausible()
			answer.Transport.Role = RoleActive
			if err := CheckAnswer(offer, answer); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestAnswerTakesWhatItKnows(t *testing.T) {
	offer := offerOfFour()
	offer.Lines[0].Codecs = []Codec{
		{MIMEType: "video/AV1", ClockRate: 90000, PayloadType: 45},
		{MIMEType: "video/vp8", ClockRate: 90000, PayloadType: 120, Feedback: []string{"goog-remb", "nack"},
			Retransmission: 121},
		{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000, PayloadType: 70},
		{MIMEType: volumetric.MIMEH264, ClockRate: 90000, PayloadType: 71,
			Format: "packetization-mode=1;profile-level-id=640032"},
		{MIMEType: volumetric.MIMEH264, ClockRate: 90000, PayloadType: 72, Format: "profile-level-id=42e01f"},
		{MIMEType: volumetric.MIMEH264, ClockRate: 90000, PayloadType: 73, Format: "packetization-mode=1"},
	}
	offer.Lines[0].Extensions = []Extension{{ID: 7, URI: "urn:x"}, {ID: 9, URI: TransportWideCC}}
	offer.Lines[1].Codecs = []Codec{{MIMEType: "video/AV1", ClockRate: 90000, PayloadType: 45}}
	offer.Lines[2].Codecs = []Codec{{MIMEType: volumetric.MIMEOpus, ClockRate: 48000, Channels: 2, PayloadType: 109,
		Retransmission: 110}}
	answer, err := Answer(offer, nil)
	if err != nil {
		t.Fatal(err)
	}
	codecs := []Codec{
		{MIMEType: volumetric.MIMEVP8, ClockRate: 90000, PayloadType: 120, Feedback: []string{"nack"},
			Retransmission: 121},
		{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000, PayloadType: 70},
	}
	if got := answer.Lines[0].Codecs; !reflect.DeepEqual(got, codecs) {
		t.Errorf("codecs are %+v, expected %+v", got, codecs)
	}
	if got := answer.Lines[0].Extensions; !reflect.DeepEqual(got, offer.Lines[0].Extensions[1:]) {
		t.Errorf("extensions are %+v", got)
	}
	if !answer.Lines[1].Rejected {
		t.Errorf("a line without a known codec is not rejected: %+v", answer.Lines[1])
	}
	if got := answer.Lines[2].Codecs; len(got) != 1 || got[0].Retransmission != 0 {
		t.Errorf("audio is retransmitted: %+v", got)
	}
}

func TestOffersThatCannotBeAnswered(t *testing.T) {
	for name, change := range map[string]func(d *Description){
		"no a=ice-ufrag":   func(d *Description) { d.Transport.Ufrag = "" },
		"no a=ice-pwd":     func(d *Description) { d.Transport.Password = "" },
		"no a=fingerprint": func(d *Description) { d.Transport.Fingerprint = "" },
		"no a=setup":       func(d *Description) { d.Transport.Role = "" },
		"1 lines to send on, and the offer has only 0 of them": func(d *Description) { d.Lines = d.Lines[1:] },
	} {
		offer := offerOfFour()
		change(offer)
		if _, err := Answer(offer, map[string]Sending{"0": {}}); !errors.Is(err, ErrDescription) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("got %v, expected ErrDescription with %q", err, name)
		}
	}
}
