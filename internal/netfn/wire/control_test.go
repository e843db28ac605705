package wire

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"
)

var testKey = bytes.Repeat([]byte{7}, 32)

func TestControlRoundTrip(t *testing.T) {
	studio, office := NewKeys(testKey, "studio", "office"), NewKeys(testKey, "office", "studio")
	for _, m := range []Control{
		{Kind: KindHello, Counter: 1, Body: []byte{}},
		{Kind: KindReport, Path: 7, Run: 1<<64 - 1, Counter: 1<<32 - 1, Time: 5, EchoRun: 6, EchoTime: 7,
			Closing: true, Answer: true, Body: bytes.Repeat([]byte{1}, MaxControlBody)},
	} {
		for _, way := range []struct{ from, to Keys }{{studio, office}, {office, studio}} {
			data, err := way.from.AppendControl([]byte("x"), m)
			if err != nil {
				t.Fatal(err)
			}
			got, err := way.to.ParseControl(data[1:])
			if err != nil || !reflect.DeepEqual(got, m) {
				t.Errorf("got %+v, %v, expected %+v", got, err, m)
			}
			if _, err := way.from.ParseControl(data[1:]); !errors.Is(err, ErrControlReflected) {
				t.Errorf("a reflected message: %v", err)
			}
		}
	}
	if _, err := studio.AppendControl(nil, Control{Body: make([]byte, MaxControlBody+1)}); err == nil {
		t.Error("a body above the limit was encoded")
	}
}

// TestControlDamage changes every bit and every length of a message.
func TestControlDamage(t *testing.T) {
	studio, office := NewKeys(testKey, "studio", "office"), NewKeys(testKey, "office", "studio")
	data, err := studio.AppendControl(nil, Control{Kind: KindHello, Path: 1, Run: 2, Counter: 3, Body: []byte("body")})
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(data) {
		damaged := bytes.Clone(data)
		damaged[bit/8] ^= 1 << (bit % 8)
		_, err := office.ParseControl(damaged)
		if !errors.Is(err, ErrControlForged) && !errors.Is(err, ErrControlMalformed) {
			t.Errorf("bit %d of byte %d changed: %v", bit%8, bit/8, err)
		}
	}
	for length := range data {
		if _, err := office.ParseControl(data[:length]); !errors.Is(err, ErrControlMalformed) {
			t.Errorf("cut to %d bytes: %v", length, err)
		}
	}
}

// TestControlKeys checks that a message is valid only between the edges it was made for.
func TestControlKeys(t *testing.T) {
	data, err := NewKeys(testKey, "studio", "office").AppendControl(nil, Control{Kind: KindHello})
	if err != nil {
		t.Fatal(err)
	}
	for name, keys := range map[string]Keys{
		"another key":  NewKeys(bytes.Repeat([]byte{8}, 32), "office", "studio"),
		"another edge": NewKeys(testKey, "attic", "studio"),
		"another peer": NewKeys(testKey, "office", "studio2"),
		"moved letter": NewKeys(testKey, "eoffice", "studi"),
	} {
		if _, err := keys.ParseControl(data); !errors.Is(err, ErrControlForged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHelloRoundTrip(t *testing.T) {
	for _, h := range []Hello{
		{Epoch: 1, Sent: 2},
		{Epoch: 65535, Sent: 1<<32 - 1, Deadlines: []time.Duration{50 * time.Millisecond, 10 * time.Second}},
	} {
		data, err := h.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		var got Hello
		if err := got.UnmarshalBinary(data); err != nil || !reflect.DeepEqual(got, h) {
			t.Errorf("got %+v, %v, expected %+v", got, err, h)
		}
		for length := range data {
			if err := got.UnmarshalBinary(data[:length]); !errors.Is(err, ErrHello) {
				t.Errorf("cut to %d bytes: %v", length, err)
			}
		}
	}
	h := Hello{Deadlines: make([]time.Duration, maxHelloRules+1)}
	if _, err := h.AppendBinary(nil); err == nil {
		t.Error("a hello for 17 rules was encoded")
	}
}

// FuzzControl checks that no datagram is taken for a message without the key, and that every hello that is decoded is
// encoded to the same bytes.
func FuzzControl(f *testing.F) {
	office := NewKeys(testKey, "office", "studio")
	data, err := NewKeys(testKey, "studio", "office").AppendControl(nil, Control{Kind: KindHello, Body: []byte("body")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{0, 1, 0, 0, 0, 2, 1, 0, 50})
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := office.ParseControl(b); err == nil && !bytes.Equal(b, data) {
			t.Fatalf("took %x for %+v", b, m)
		}
		var h Hello
		if h.UnmarshalBinary(b) != nil {
			return
		}
		if again, err := h.AppendBinary(nil); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x was decoded to %+v and encoded to %x, %v", b, h, again, err)
		}
	})
}
