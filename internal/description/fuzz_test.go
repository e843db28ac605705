package description

import (
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// attributes are lines that an edit inserts into a description: each is valid somewhere.
var attributes = []string{
	"m=video 9 UDP/TLS/RTP/SAVPF 96 97", "m=audio 0 UDP/TLS/RTP/SAVPF 111",
	"m=application 9 UDP/DTLS/SCTP webrtc-datachannel", "m=text 9 UDP/TLS/RTP/SAVPF 98", "a=mid:0", "a=mid:1",
	"a=mid:x y", "a=mid:", "a=group:BUNDLE 0 1 2 3", "a=group:BUNDLE 0", "a=sendrecv", "a=sendonly", "a=recvonly",
	"a=inactive", "a=bundle-only", "a=rtcp-mux", "a=rtcp-rsize", "a=sctp-port:5000", "a=sctp-port:70000",
	"a=max-message-size:0", "a=ice-ufrag:abcd", "a=ice-ufrag:a b", "a=ice-pwd:aaaaaaaaaaaaaaaaaaaaaa",
	"a=ice-pwd:short", "a=ice-lite", "a=ice-options:trickle", "a=end-of-candidates", "a=setup:active",
	"a=setup:holdconn", "a=fingerprint:sha-1 AA", "a=fingerprint:sha-256 " + strings.Repeat("ab:", 31) + "AB",
	"a=candidate:1 1 udp 1 203.0.113.9 9 typ host", "a=candidate:", "a=rtpmap:96 volumetric/90000",
	"a=rtpmap:96 VP8/90000", "a=rtpmap:97 rtx/90000", "a=rtpmap:200 x/0", "a=fmtp:97 apt=96", "a=fmtp:97 apt=97",
	"a=fmtp:96 x=y", "a=rtcp-fb:96 nack", "a=rtcp-fb:* ccm fir", "a=rtcp-fb:* ack ccfb", "a=extmap:1 urn:x",
	"a=extmap:1/sendonly urn:y", "a=extmap:0 z", "a=ssrc:1 cname:x", "a=ssrc:2 cname:x", "a=ssrc:0 cname:x",
	"a=ssrc-group:FID 1 2", "a=ssrc-group:FID 2 1", "a=ssrc-group:FID 1 1", "a=msid:a b", "a=msid:- -",
	"a=simulcast:send 1;2", "a=simulcast:send 1", "a=simulcast:send ~1,2;3 recv 4", "a=rid:1 send",
	"a=rid:1 send max-width=640;max-br=-1", "a=rid:2 send pt=96", "a=rid:3 recv",
	"c=IN IP4 0.0.0.0", "b=AS:1", "t=0 0", "s=-", "",
}

// edited returns a description with changed lines. An edit is three bytes: the operation and its lines.
func edited(text string, edits []byte) string {
	lines := strings.Split(text, "\r\n")
	for ; len(edits) >= 3 && len(lines) < 2000; edits = edits[3:] {
		at, other := int(edits[1])*len(lines)/256, int(edits[2])
		switch edits[0] % 8 {
		case 0:
			lines = append(lines[:at], lines[at+1:]...)
			if len(lines) == 0 {
				return ""
			}
		case 1:
			from := other * len(lines) / 256
			lines[at], lines[from] = lines[from], lines[at]
		case 2:
			from := other * len(lines) / 256
			lines = append(lines[:at+1], append([]string{lines[from]}, lines[at+1:]...)...)
		case 3:
			lines[at] = attributes[other%len(attributes)]
		case 4:
			lines[at] = strings.Repeat(lines[at], 1+other%4)
		case 5:
			var copies []string
			for n := range 1 + int(edits[0]>>3)*80/31 {
				copies = append(copies, "a=candidate:"+strings.Repeat("1", 1+n)+" 1 udp 1 203.0.113.9 9 typ host")
			}
			lines = append(lines[:at+1], append(copies, lines[at+1:]...)...)
		default:
			lines = append(lines[:at+1], append([]string{attributes[other%len(attributes)]}, lines[at+1:]...)...)
		}
	}
	return strings.Join(lines, "\r\n")
}

// mostAllocated is the number of bytes that parsing may allocate for each byte of a text, beside mostOverhead.
const (
	mostAllocated = 300
	mostOverhead  = 256 << 10
)

// FuzzParse parses descriptions that were edited line by line. The invariants:
//
//   - An error wraps ErrDescription.
//   - Parsing allocates at most a multiple of the text, and each kept string is a copy.
//   - The result is within its limits: see checkSound.
//   - The result can be written, and parsed again to the same.
//   - The result can be answered or is refused with ErrDescription, and an answer fits its offer.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		twoLines, chromeAnswer, firefoxAnswer, chromeOffer, offerOfFour().Marshal(),
		answerOfFour(f).Marshal(), "v=0\r\n",
	} {
		f.Add(text, []byte{})
		for n := range attributes {
			f.Add(text, []byte{6, byte(37 * n), byte(n)})
		}
		f.Add(text, []byte{253, 200, 0, 1, 100, 120, 2, 250, 100, 0, 90, 0})
	}
	f.Fuzz(func(t *testing.T, text string, edits []byte) {
		text = edited(text, edits)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		d, err := Parse(text)
		runtime.ReadMemStats(&after)
		most := mostAllocated*uint64(len(text)) + mostOverhead
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > most {
			t.Fatalf("parsing %d bytes allocated %d, expected at most %d", len(text), allocated, most)
		}
		if err != nil {
			if !errors.Is(err, ErrDescription) {
				t.Fatalf("got %v, expected ErrDescription", err)
			}
			return
		}
		checkSound(t, d)
		for _, s := range kept(d) {
			if !isOwn(s) {
				t.Fatalf("%q is a part of a larger buffer, expected a copy", s)
			}
		}
		again, err := Parse(d.Marshal())
		if err != nil {
			t.Fatalf("%v in the written text:\n%s", err, d.Marshal())
		}
		if !reflect.DeepEqual(again, d) {
			t.Fatalf("got\n%+v\nwant\n%+v\nof\n%s", again, d, d.Marshal())
		}
		checkAnswers(t, d)
	})
}

// checkSound fails the test if a parsed description exceeds a limit.
func checkSound(t *testing.T, d *Description) {
	t.Helper()
	eachString(reflect.ValueOf(d), func(s string) {
		if strings.ContainsAny(s, "\r\n") {
			t.Fatalf("%q has a line break", s)
		}
	})
	if n := len(d.Transport.Candidates); n > MaxCandidates {
		t.Fatalf("%d candidates, expected at most %d", n, MaxCandidates)
	}
	for key, value := range map[string]string{"user name": d.Transport.Ufrag, "password": d.Transport.Password} {
		if len(value) > maxPassword || strings.Contains(value, " ") {
			t.Fatalf("%s %q", key, value)
		}
	}
	mids, sources := map[string]bool{}, map[uint32]string{}
	for _, l := range d.Lines {
		if l.MID == "" && !l.Rejected || mids[l.MID] && l.MID != "" {
			t.Fatalf("mid %q is missing, or stands on two lines", l.MID)
		}
		mids[l.MID] = true
		if l.Rejected && (len(l.Codecs) > 0 || l.DataPort != 0 || l.Direction != DirectionInactive) {
			t.Fatalf("the rejected line %q is described: %+v", l.MID, l)
		}
		if !l.Rejected && l.Kind != volumetric.KindVideo && l.Kind != volumetric.KindAudio && l.Kind != KindData {
			t.Fatalf("line %q of kind %q is not rejected", l.MID, l.Kind)
		}
		for _, ssrc := range []uint32{l.Streams.SSRC, l.Streams.Retransmission} {
			if other, taken := sources[ssrc]; taken && ssrc != 0 {
				t.Fatalf("ssrc %d is of the lines %q and %q", ssrc, other, l.MID)
			}
			sources[ssrc] = l.MID
		}
	}
}

// checkAnswers fails the test if an answer does not fit its offer.
func checkAnswers(t *testing.T, d *Description) {
	t.Helper()
	for _, by := range []func(*Description, map[string]Sending) (*Description, error){Answer, AnswerAsForwarder} {
		checkAnswer(t, d, by)
	}
}

func checkAnswer(t *testing.T, d *Description, by func(*Description, map[string]Sending) (*Description, error)) {
	t.Helper()
	answer, err := by(d, nil)
	if err != nil {
		if !errors.Is(err, ErrDescription) {
			t.Fatalf("got %v, expected ErrDescription", err)
		}
		return
	}
	role := answer.Transport.Role
	answer.Transport = plausible()
	if answer.Transport.Role = role; role == "" {
		return
	}
	if err := CheckAnswer(d, answer); err != nil {
		t.Fatalf("%v\noffer  %+v\nanswer %+v", err, d, answer)
	}
}

// eachString calls a function for each string of a value.
func eachString(v reflect.Value, do func(string)) {
	switch v.Kind() {
	case reflect.String:
		do(v.String())
	case reflect.Pointer:
		if !v.IsNil() {
			eachString(v.Elem(), do)
		}
	case reflect.Struct:
		for n := range v.NumField() {
			eachString(v.Field(n), do)
		}
	case reflect.Slice:
		for n := range v.Len() {
			eachString(v.Index(n), do)
		}
	}
}

// kept returns the strings of a description that come from its text.
func kept(d *Description) []string {
	all := []string{d.Transport.Ufrag, d.Transport.Password, d.Transport.Fingerprint}
	all = append(all, d.Transport.Candidates...)
	for _, l := range d.Lines {
		all = append(all, l.MID, l.Stream)
		for _, layer := range l.Layers {
			all = append(all, layer.ID)
		}
		for _, c := range l.Codecs {
			all = append(all, c.Format)
		}
		for _, e := range l.Extensions {
			all = append(all, e.URI)
		}
	}
	return all
}

// isOwn reports whether a string begins at an address that may be the start of a block of memory: Go's allocator aligns
// blocks of 16 bytes and more to 8 bytes. Strings cut from a buffer begin anywhere. Shorter strings count as own.
func isOwn(s string) bool {
	const least, alignment = 16, 8
	return len(s) < least || uintptr(unsafe.Pointer(unsafe.StringData(s)))%alignment == 0
}
