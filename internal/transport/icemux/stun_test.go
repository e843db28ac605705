package icemux

import (
	"bytes"
	"testing"

	"github.com/pion/stun/v4"
)

// FuzzSTUN: the addressee of a message that Pion decodes is the first part of the first user name that Pion finds.
// Other messages have an addressee within the message, or none.
func FuzzSTUN(f *testing.F) {
	for _, setters := range [][]stun.Setter{
		{stun.TransactionID, stun.BindingRequest, stun.NewUsername("server:client")},
		{stun.TransactionID, stun.BindingRequest, stun.NewSoftware("abc"), stun.NewUsername("s")},
		{stun.TransactionID, stun.BindingSuccess},
	} {
		m, err := stun.Build(setters...)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(m.Raw)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, ok := parseSTUN(b)
		if !ok {
			return
		}
		_, _ = m.kind(), m.transaction()
		ufrag := m.addressee()
		if len(ufrag) > 0 && !bytes.Contains(b, ufrag) {
			t.Fatalf("the addressee %q is not in the message", ufrag)
		}
		decoded := stun.Message{Raw: bytes.Clone(b)}
		if decoded.Decode() != nil {
			return
		}
		name, err := decoded.Get(stun.AttrUsername)
		if err != nil {
			return
		}
		if want, _, _ := bytes.Cut(name, []byte{':'}); !bytes.Equal(ufrag, want) {
			t.Errorf("the addressee is %q, for Pion %q", ufrag, want)
		}
	})
}
