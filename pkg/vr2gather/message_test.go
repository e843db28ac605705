package vr2gather_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/vr2gather"
)

func TestMessage(t *testing.T) {
	cases := map[string]struct {
		text string
		want vr2gather.Message
	}{
		"candidate": {
			"0@4@candidate:1 1 udp 1 10.8.0.1 9000 typ host",
			vr2gather.Message{Type: 4, Value: "candidate:1 1 udp 1 10.8.0.1 9000 typ host"},
		},
		"padded":          {"0@7@1,1,1\x00\x00\x00", vr2gather.Message{Type: vr2gather.MessageQuality, Value: "1,1,1"}},
		"stale buffer":    {"0@7@1,1 \x00;9,9\x00", vr2gather.Message{Type: vr2gather.MessageQuality, Value: "1,1"}},
		"empty":           {"1@1@", vr2gather.Message{Client: 1, Type: vr2gather.MessageHello}},
		"at in the value": {"1@3@a@b@", vr2gather.Message{Client: 1, Type: vr2gather.MessageAnswer, Value: "a@b@"}},
		"unknown type":    {"4294967295@99@x", vr2gather.Message{Client: 4294967295, Type: 99, Value: "x"}},
		"spaces":          {" 1 @ 2 @ x ", vr2gather.Message{Client: 1, Type: vr2gather.MessageOffer, Value: "x"}},
	}
	for name, c := range cases {
		if got, err := vr2gather.ParseMessage([]byte(c.text)); err != nil || got != c.want {
			t.Errorf("%s: got %+v and %v, want %+v", name, got, err, c.want)
		}
	}
	for _, text := range []string{"", "hello", "1@2", "@2@x", "1@@x", "-1@2@x", "1@x@y", "4294967296@2@x", "1@2.0@x",
		"0x1@2@y"} {
		if got, err := vr2gather.ParseMessage(
			[]byte(text),
		); !errors.Is(err, vr2gather.ErrMessage) ||
			got != (vr2gather.Message{}) {
			t.Errorf("%q: got %+v and %v, want ErrMessage", text, got, err)
		}
	}
}

func TestMessageAppend(t *testing.T) {
	text, err := vr2gather.Message{
		Client: 1,
		Type:   vr2gather.MessageCandidate,
		Value:  "candidate:x",
	}.Append(
		[]byte("|"),
	)
	if err != nil || string(text) != "|1@4@candidate:x" {
		t.Errorf("got %q and %v", text, err)
	}
	if text, err := (vr2gather.Message{Type: 4, Value: "a@b"}).Append(
		[]byte("|"),
	); !errors.Is(err, vr2gather.ErrMessage) ||
		string(text) != "|" {
		t.Errorf("got %q and %v, want ErrMessage: old peers would cut the value off", text, err)
	}
}

func TestDescription(t *testing.T) {
	offer := vr2gather.Description{
		Type: "offer",
		SDP:  "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=someone@example\r\na=msid:0 \"<video_1_0>\"\r\n",
	}
	text, err := vr2gather.Message{Type: vr2gather.MessageOffer, Value: offer.Value()}.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	// Peers read the text between the second and the third "@".
	parts := strings.Split(string(text), "@")
	if len(parts) != 3 {
		t.Fatalf("%d parts in %s, want 3", len(parts), text)
	}
	if got, err := vr2gather.ParseDescription(parts[2]); err != nil || got != offer {
		t.Errorf("got %+v and %v, want %+v", got, err, offer)
	}
	for _, value := range []string{"", "x", "null", `{"type":"offer"}`, `{"type":"rollback","sdp":"x"}`, `{"type":1}`,
		`{"type":"answer","sdp":"x"} x`} {
		if got, err := vr2gather.ParseDescription(
			value,
		); !errors.Is(err, vr2gather.ErrDescription) ||
			got != (vr2gather.Description{}) {
			t.Errorf("%q: got %+v and %v, want ErrDescription", value, got, err)
		}
	}
}

func FuzzMessage(f *testing.F) {
	for _, seed := range []string{"0@2@{\"type\":\"offer\",\"sdp\":\"v=0\"}", "1@4@candidate:",
		"0@7@1,0,-1;2,1\x00\x00 ", "@@", "1@2", "a@b@c@d", "\xff@\x00@"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := vr2gather.ParseMessage(text)
		if err != nil {
			if !errors.Is(err, vr2gather.ErrMessage) {
				t.Fatal(err)
			}
			return
		}
		if strings.ContainsRune(m.Value, 0) || len(m.Value) > len(text) {
			t.Fatalf("%q was read as %q", text, m.Value)
		}
		if d, err := vr2gather.ParseDescription(m.Value); err == nil {
			if again, err := vr2gather.ParseDescription(
				d.Value(),
			); err != nil || again != d ||
				strings.Contains(d.Value(), "@") {
				t.Fatalf("%+v became %+v, %v", d, again, err)
			}
		}
		again, err := m.Append(nil)
		if strings.Contains(m.Value, "@") {
			if !errors.Is(err, vr2gather.ErrMessage) {
				t.Fatalf("%q was written as %q, %v", m.Value, again, err)
			}
			return
		}
		if back, err := vr2gather.ParseMessage(again); err != nil || back != m {
			t.Fatalf("%+v became %+v, %v", m, back, err)
		}
	})
}
