package icetcp

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/pion/stun/v4"
)

func TestGreeting(t *testing.T) {
	build := func(setters ...stun.Setter) []byte {
		message, err := stun.Build(append([]stun.Setter{stun.TransactionID}, setters...)...)
		if err != nil {
			t.Fatal(err)
		}
		return framed(message.Raw)
	}
	for _, test := range []struct {
		name  string
		bytes []byte
		peer  string
		valid bool
	}{
		{"a request for ada", bindingRequest(t, "ada"), "ada", true},
		{"a response", build(stun.BindingSuccess, stun.NewUsername("ada:x")), "", false},
		{"a request for nobody", build(stun.BindingRequest), "", false},
		{"a name without a colon", build(stun.BindingRequest, stun.NewUsername("ada")), "", false},
		{"an empty name", build(stun.BindingRequest, stun.NewUsername(":x")), "", false},
		{"another method", build(stun.NewType(stun.MethodAllocate, stun.ClassRequest), stun.NewUsername("ada:x")), "",
			false},
		{"nothing", framed(nil), "", false},
		{"no STUN", framed([]byte("GET / HTTP/1.1")), "", false},
		{"too much", framed(make([]byte, maxGreeting+1)), "", false},
	} {
		// Byte by byte, as the greeting may arrive.
		var g greeting
		var peer string
		var whole bool
		var err error
		for _, b := range test.bytes {
			if peer, whole, err = g.add([]byte{b}); whole || err != nil {
				break
			}
		}
		if peer != test.peer || whole != test.valid || errors.Is(err, errGreeting) == test.valid {
			t.Errorf("%s: got %q, whole %v, %v", test.name, peer, whole, err)
		}
	}
	request := bindingRequest(t, "ada")
	var g greeting
	if _, whole, err := g.add(request[:len(request)-1]); whole || err != nil {
		t.Errorf("a packet that is cut off: whole %v, %v", whole, err)
	}
}

// FuzzGreeting splits the greeting at any place.
func FuzzGreeting(f *testing.F) {
	f.Add(bindingRequest(f, "ada"), 7)
	f.Add(framed([]byte("GET / HTTP/1.1")), 1)
	f.Add(binary.BigEndian.AppendUint16(nil, maxGreeting), 0)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		var at, once greeting
		cut = min(max(cut, 0), len(data))
		name, whole, err := at.add(data[:cut])
		if !whole && err == nil {
			name, whole, err = at.add(data[cut:])
		}
		if err != nil && !errors.Is(err, errGreeting) || whole != (name != "") {
			t.Fatalf("got %q, whole %v, %v", name, whole, err)
		}
		if n, w, e := once.add(data); n != name || w != whole || (e == nil) != (err == nil) {
			t.Fatalf("cut at %d: %q, %v, %v; at once: %q, %v, %v", cut, name, whole, err, n, w, e)
		}
	})
}
