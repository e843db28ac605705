package engineio

import (
	"errors"
	"reflect"
	"testing"
)

// TestTranscript is a conversation of socket.io's own clients and servers.
func TestTranscript(t *testing.T) {
	for _, test := range []struct {
		text string
		kind Type
		want Packet
	}{
		{`0{"sid":"lab1"}`, Open, Packet{}},
		{`2`, Ping, Packet{}},
		{`3probe`, Pong, Packet{}},
		{`40`, Message, Packet{Kind: Connect, Namespace: "/", ID: -1}},
		{`40{"sid":"x"}`, Message, Packet{Kind: Connect, Namespace: "/", ID: -1, JSON: []byte(`{"sid":"x"}`)}},
		{`42["hello",1]`, Message, Packet{Kind: Event, Namespace: "/", ID: -1, JSON: []byte(`["hello",1]`)}},
		{`42/room,["hello"]`, Message, Packet{Kind: Event, Namespace: "/room", ID: -1, JSON: []byte(`["hello"]`)}},
		{`4212["hello"]`, Message, Packet{Kind: Event, Namespace: "/", ID: 12, JSON: []byte(`["hello"]`)}},
		{`41/room,`, Message, Packet{Kind: Disconnect, Namespace: "/room", ID: -1}},
		{`451-["SendData","a/0/1",{"_placeholder":true,"num":0}]`, Message,
			Packet{Kind: BinaryEvent, Attachments: 1, Namespace: "/", ID: -1,
				JSON: []byte(`["SendData","a/0/1",{"_placeholder":true,"num":0}]`)}},
	} {
		kind, data, err := Parse([]byte(test.text))
		if err != nil || kind != test.kind {
			t.Errorf("%s: got %c, %v", test.text, kind, err)
			continue
		}
		if kind != Message {
			continue
		}
		got, err := ParsePacket(data)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, %v, want %+v", test.text, got, err, test.want)
		}
		if again := string(got.Append(nil)); again != test.text {
			t.Errorf("%s is written as %s", test.text, again)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, text := range []string{"", "7", "x", "\x00"} {
		if _, _, err := Parse([]byte(text)); !errors.Is(err, ErrPacket) {
			t.Errorf("%q: got %v, want ErrPacket", text, err)
		}
	}
	for _, text := range []string{"", "9", "5", "5-[]", "5x-[]", "517-[]", "5-1-[]", "2[", "2nonsense",
		"299999999999999999999[]"} {
		if _, err := ParsePacket([]byte(text)); !errors.Is(err, ErrPacket) {
			t.Errorf("%q: got %v, want ErrPacket", text, err)
		}
	}
	for _, text := range []string{`2["SendData","a",{"_placeholder":true,"num":0}]`,
		`52-["SendData","a",{"_placeholder":true,"num":0}]`, `51-["SendData","a"]`,
		`51-["SendData",1,{"_placeholder":true,"num":0}]`, `51-["SendData","a",{"num":0}]`,
		`51-["SendData","a",{"_placeholder":true,"num":1}]`, `51-{}`, `51-`} {
		p, err := ParsePacket([]byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if _, _, err := p.ParseEvent(); !errors.Is(err, ErrPacket) {
			t.Errorf("%q: got %v, want ErrPacket", text, err)
		}
	}
}

func FuzzParsePacket(f *testing.F) {
	f.Add("451-[\"SendData\",\"a\",{\"_placeholder\":true,\"num\":0}]")
	f.Add("42/room,12[\"hello\"]")
	f.Add("2")
	f.Fuzz(func(t *testing.T, text string) {
		kind, data, err := Parse([]byte(text))
		if err != nil || kind != Message {
			return
		}
		p, err := ParsePacket(data)
		if err != nil {
			return
		}
		_, _, _ = p.ParseEvent()
		if again, err := ParsePacket(p.Append(nil)[1:]); p.Kind <= BinaryEvent &&
			(err != nil || again.Kind != p.Kind || again.ID != p.ID) {
			t.Errorf("%q was read as %+v, and its text as %+v, %v", text, p, again, err)
		}
	})
}

func TestEvent(t *testing.T) {
	text := AppendEvent(nil, EventReceive, "a/3/1")
	kind, data, err := Parse(text)
	if err != nil || kind != Message {
		t.Fatalf("got %c, %v", kind, err)
	}
	p, err := ParsePacket(data)
	if err != nil {
		t.Fatal(err)
	}
	if event, stream, err := p.ParseEvent(); err != nil || event != EventReceive || stream != "a/3/1" {
		t.Errorf("got %q, %q, %v", event, stream, err)
	}
}
