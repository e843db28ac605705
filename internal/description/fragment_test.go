package description

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// fragment is a fragment of a browser, with candidates and credentials.
const fragment = "a=group:BUNDLE 0 1\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=ice-ufrag:EsAw\r\n" +
	"a=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\n" +
	"a=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0 ufrag EsAw network-id 1\r\n" +
	"a=candidate:473322822 1 tcp 1518280447 192.0.2.1 9 typ host tcptype active generation 0 ufrag EsAw\r\n" +
	"a=end-of-candidates\r\n"

func TestParseFragment(t *testing.T) {
	got, err := ParseFragment(fragment)
	if err != nil {
		t.Fatal(err)
	}
	want := Transport{Ufrag: "EsAw", Password: "P2uYro0UCOQ4zxjKXaWCBui1", EndOfCandidates: true, Candidates: []string{
		"candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0 ufrag EsAw network-id 1",
		"candidate:473322822 1 tcp 1518280447 192.0.2.1 9 typ host tcptype active generation 0 ufrag EsAw",
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, expected %+v", got, want)
	}
	for name, text := range map[string]string{
		"no line":              "hello",
		"two letters":          "aa=ice-ufrag:EsAw",
		"short password":       "a=ice-ufrag:EsAw\na=ice-pwd:short",
		"no password":          "a=ice-ufrag:EsAw",
		"return in a line":     "a=candidate:1\r2",
		"too many candidates":  "a=mid:0\n" + manyCandidates(MaxCandidates+1),
		"space in credentials": "a=ice-ufrag:a b c d\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1",
	} {
		if _, err := ParseFragment(text); !errors.Is(err, ErrDescription) {
			t.Errorf("%s: error is %v, expected ErrDescription", name, err)
		}
	}
	if _, err := ParseFragment(manyCandidates(MaxCandidates)); err != nil {
		t.Error(err)
	}
}

func manyCandidates(n int) string {
	var text strings.Builder
	for i := range n {
		text.WriteString("a=candidate:" + strings.Repeat("1", i+1) + " 1 udp 1 192.0.2.1 9 typ host\n")
	}
	return text.String()
}

// FuzzParseFragment parses fragments. An error wraps ErrDescription; the result is within its limits and can be written
// and parsed again.
func FuzzParseFragment(f *testing.F) {
	f.Add(fragment)
	f.Add("a=ice-ufrag:ysXw\r\na=ice-pwd:vw5LmwG4y/e6dPP/zAP9Gp5k\r\n")
	f.Add("a=candidate:\na=candidate:\na=end-of-candidates")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseFragment(text)
		if err != nil {
			if !errors.Is(err, ErrDescription) {
				t.Fatalf("got %v, expected ErrDescription", err)
			}
			return
		}
		if len(got.Candidates) > MaxCandidates || len(got.Ufrag) > MaxUfrag || len(got.Password) > maxPassword {
			t.Fatalf("%+v exceeds a limit", got)
		}
		if slices.ContainsFunc(got.Candidates, func(c string) bool { return strings.ContainsAny(c, "\r\n") }) {
			t.Fatalf("a candidate of %+v has a line break", got)
		}
		d := Description{Transport: got, Lines: []Line{{MID: "0", Kind: "video"}}}
		again, err := ParseFragment(d.MarshalFragment())
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Fatalf("got %+v (%v), expected %+v", again, err, got)
		}
	})
}
