package description

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

const twoLines = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n" +
	"m=video 9 UDP/TLS/RTP/SAVPF 96 97\r\na=mid:0\r\na=ssrc-group:FID 11 12\r\n" +
	"a=ssrc:11 cname:x\r\na=ssrc:12 cname:x\r\n" +
	"m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:1\r\na=ssrc:13 cname:x\r\na=ssrc:13 msid:s t\r\n" +
	"m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:2\r\na=recvonly\r\na=ssrc:14 cname:x\r\n"

func TestStreamsAreThoseOfLinesThatSend(t *testing.T) {
	d := parsed(t, twoLines)
	want := []Line{
		{MID: "0", Kind: volumetric.KindVideo, Direction: DirectionSendRecv,
			Streams: Streams{SSRC: 11, Retransmission: 12}},
		{MID: "1", Kind: volumetric.KindAudio, Direction: DirectionSendRecv, Streams: Streams{SSRC: 13}, Stream: "s t"},
		{MID: "2", Kind: volumetric.KindVideo, Direction: DirectionRecvOnly},
	}
	if !reflect.DeepEqual(d.Lines, want) {
		t.Errorf("got %+v, want %+v", d.Lines, want)
	}
}

func TestWhatIsParsedIsWhatWasMarshalled(t *testing.T) {
	mixed := offerOfFour()
	mixed.Lines[0] = Line{MID: "0", Kind: volumetric.KindVideo, Direction: DirectionInactive, Rejected: true}
	mixed.Lines[2] = Line{Kind: "application", Direction: DirectionInactive, Rejected: true}
	mixed.Transport.Lite, mixed.Transport.EndOfCandidates = true, true
	for name, d := range map[string]*Description{
		"an offer": offerOfFour(), "rejected lines": mixed, "an answer": answerOfFour(t),
		"hundreds of lines": offerOfHundreds(),
	} {
		if got := parsed(t, d.Marshal()); !reflect.DeepEqual(got, d) {
			t.Errorf("%s: got\n%+v\nwant\n%+v", name, got, d)
		}
	}
}

func manyTimes(n int, format string) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf(format, i+1)
	}
	return lines
}

// TestMalformed changes a valid description, whose last line sends audio, so that it is refused with an error that has
// the expected value.
func TestMalformed(t *testing.T) {
	right := offerOfFour().Marshal()
	for _, test := range []struct {
		name    string
		of      func(string) string
		because string
	}{
		{"no description", func(string) string { return "garbage" }, "syntax error"},
		{"a line break of half a kind", replaced("a=setup", "a=x\rx\r\na=setup"), "carriage return"},
		{"an unknown kind", replaced("m=audio", "m=smell"), "smell"},
		{"no mids", lacking("a=mid"), `line 0 (mid ""): mid is "", expected one word`},
		{"a mid of two words", replaced("a=mid:1\r\n", "a=mid:1 2\r\n"), `line 1 (mid "1 2")`},
		{"a mid twice", replaced("a=mid:1\r\n", "a=mid:0\r\n"), `line 1 (mid "0"): mid "0" stands on two lines`},
		{"a line outside the bundle", replaced("BUNDLE 0 1 2 3", "BUNDLE 0 1 3"),
			`line 2 (mid "2"): line is outside the bundle`},
		{"a payload type of 8 bits", replaced("SAVPF 111", "SAVPF 128"), `payload type "128", expected 0 to 127`},
		{"a codec without payload type", appended("a=rtpmap:opus 111/2"), "expected a payload type"},
		{"a format without payload type", appended("a=fmtp:128 x=1"), "expected a payload type"},
		{"feedback without payload type", appended("a=rtcp-fb:x nack"), "expected a payload type"},
		{"a codec without rate", replaced("VP8/90000", "VP8"), `payload type 100 is "VP8", expected NAME/RATE`},
		{"a codec at rate 0", replaced("VP8/90000", "VP8/0"), "expected NAME/RATE"},
		{"a codec without name", replaced("VP8/90000", "/90000"), "expected NAME/RATE"},
		{"channels without end", replaced("opus/48000/2", "opus/48000/65536"), "channels"},
		{"feedback without end", appended(manyTimes(maxFeedback+1, "a=rtcp-fb:111 f%d")...),
			"more than 16 kinds of feedback"},
		{"feedback about all without end", appended(manyTimes(maxFeedback, "a=rtcp-fb:* f%d")...),
			"more than 16 kinds of feedback"},
		{"an extension without URI", appended("a=extmap:2"), "expected an identifier and a URI"},
		{"an extension 0", appended("a=extmap:0 x:y"), "expected an identifier of 1 to 255"},
		{"an extension 256", appended("a=extmap:256/sendonly x:y"), "expected an identifier of 1 to 255"},
		{"an SSRC that is not a number", appended("a=ssrc:many cname:x"), `line 3 (mid "3"): ssrc "many"`},
		{"an SSRC of 33 bits", appended("a=ssrc-group:FID 4294967296 1"), "expected a number of 32 bits"},
		{"retransmissions of 33 bits", appended("a=ssrc-group:FID 1 4294967296"), "expected a number of 32 bits"},
		{"an SSRC of 0", appended("a=ssrc:0 cname:x"), "other than 0"},
		{"an SSRC twice", replaced("1000000002", "1000000006"), `ssrc 1000000006 is taken by line "1"`},
		{"an SSRC that retransmits itself", replaced("1000000002", "1000000003"), "ssrc 1000000003 is taken"},
		{"sources without end", appended(manyTimes(30000, "a=ssrc:%d cname:x")...),
			"30001 attributes of sources, expected at most 32"},
		{"candidates without end", appended(manyTimes(MaxCandidates, "a=candidate:1 1 udp 1 192.0.2.1 %d typ host")...),
			"more than 64 candidates"},
		{"a short user name", replaced("a=ice-ufrag:", "a=ice-ufrag:x\r\na=ice-ufrag:"),
			"ice-ufrag of 1 bytes, expected 4 to 64"},
		{"a long user name", replaced("a=ice-ufrag:", "a=ice-ufrag:"+strings.Repeat("x", 65)+"\r\na=ice-ufrag:"),
			"ice-ufrag of 65 bytes, expected 4 to 64"},
		{"a password with spaces", replaced("a=ice-pwd:", "a=ice-pwd:  "), "ice-pwd of 34 bytes"},
		{"a password without end", replaced("a=ice-pwd:", "a=ice-pwd:"+strings.Repeat("x", 256)),
			"ice-pwd of 288 bytes"},
		{"a role that is none", replaced("a=setup:actpass", "a=setup:holdconn"),
			`setup is "holdconn", expected actpass`},
		{"a fingerprint by an old function", replaced("sha-256", "sha-1"), `fingerprint by "sha-1", expected sha-256`},
		{"a fingerprint without value", replaced("5A:C3", ""), "expected 32 bytes in hexadecimal"},
		{"a fingerprint of other digits", replaced("5A:C3", "5A:CG"), "expected 32 bytes in hexadecimal"},
	} {
		got, err := Parse(test.of(right))
		if !errors.Is(err, ErrDescription) || !strings.Contains(err.Error(), test.because) {
			t.Errorf("%s: got %v and error %v, expected ErrDescription with %q", test.name, got, err, test.because)
		}
	}
}

func TestOddButRight(t *testing.T) {
	right := offerOfFour().Marshal()
	for _, test := range []struct {
		name string
		of   func(string) string
		is   func(d *Description) bool
	}{
		{"no credentials", lacking("a=ice"), func(d *Description) bool {
			return d.Transport.Ufrag == "" &&
				d.Transport.Password == ""
		}},
		{"no group", lacking("a=group"), func(d *Description) bool { return reflect.DeepEqual(d, offerOfFour()) }},
		{"a transport of the session alone", ofTheSession, func(d *Description) bool {
			want := plausible()
			want.Role, want.EndOfCandidates = RolePassive, true
			return reflect.DeepEqual(d.Transport, want)
		}},
		{"a transport of the tagged line alone", rearrangedTag,
			func(d *Description) bool { return d.Transport.Ufrag == "taggedUfrag" }},
		{
			"candidates on every line",
			replaced("a=rtcp-mux\r\n", "a=rtcp-mux\r\na="+
				plausible().Candidates[0]+"\r\na=candidate:3 1 udp 1 192.0.2.1 9 typ host\r\n"),
			func(d *Description) bool { return len(d.Transport.Candidates) == 3 },
		},
		{"rejected lines", replaced("m=audio 9", "m=audio 0"),
			func(d *Description) bool { return d.Lines[2].Rejected && d.Lines[3].Rejected }},
		{
			"a line in the bundle only", func(text string) string {
				return replaced("a=mid:2", "a=bundle-only\r\na=mid:2")(replaced("m=audio 9", "m=audio 0")(text))
			},
			func(d *Description) bool { return !d.Lines[2].Rejected && d.Lines[3].Rejected },
		},
		{"nothing but rejected lines", replaced(" 9 UDP", " 0 UDP"),
			func(d *Description) bool { return reflect.DeepEqual(d.Transport, Transport{}) }},
		{"a direction of the session", func(text string) string {
			for _, direction := range []string{"a=sendonly", "a=recvonly"} {
				text = lacking(direction)(text)
			}
			return replaced("a=ice-options", "a=inactive\r\na=ice-options")(text)
		}, func(d *Description) bool { return d.Lines[0].Direction == DirectionInactive }},
		{"several fingerprints", replaced("a=fingerprint:", "a=fingerprint:sha-1 AB\r\na=fingerprint:"),
			func(d *Description) bool {
				return d.Transport.Fingerprint == plausible().Fingerprint
			}},
		{"a fingerprint in small letters", replaced("sha-256 5A:C3", "SHA-256 5a:c3"), func(d *Description) bool {
			return d.Transport.Fingerprint == plausible().Fingerprint
		}},
	} {
		if d := parsed(t, test.of(right)); !test.is(d) {
			t.Errorf("%s: got %+v", test.name, d)
		}
	}
}

// ofTheSession moves the transport attributes except the candidates to the session.
func ofTheSession(text string) string {
	parts := sections(text)
	for i := range parts[1:] {
		for _, prefix := range []string{"a=ice", "a=fingerprint", "a=setup"} {
			parts[i+1] = lacking(prefix)(parts[i+1])
		}
	}
	parts[0] += "a=setup:passive\r\na=end-of-candidates\r\n"
	return strings.Join(parts, "")
}

// rearrangedTag begins the bundle with a line other than the first, with credentials of its own.
func rearrangedTag(text string) string {
	return replaced("a=mid:3\r\n", "a=mid:3\r\na=ice-ufrag:taggedUfrag\r\n")(replaced("BUNDLE 0 1 2 3",
		"BUNDLE 3 0 1 2")(text))
}
