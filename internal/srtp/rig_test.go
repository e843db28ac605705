package srtp

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pion/rtp"
	pion "github.com/pion/srtp/v3"
)

var profiles = []Profile{AES128GCM, AES256GCM, AES128CMHMACSHA180}

// fromHex parses hexadecimal digits with any white space.
func fromHex(t testing.TB, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// testKeys are keys whose bytes all differ.
func testKeys(t testing.TB, p Profile) Keys {
	t.Helper()
	n, err := KeyingMaterialLength(p)
	if err != nil {
		t.Fatal(err)
	}
	material := make([]byte, n)
	for i := range material {
		material[i] = byte(i + 1)
	}
	k, err := ExtractKeys(p, material)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// newPair returns the client's sealer and the server's opener.
func newPair(t testing.TB, p Profile, window int) (*Sealer, *Opener) {
	t.Helper()
	s, err := NewSealer(testKeys(t, p), true)
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewOpener(testKeys(t, p), false, window)
	if err != nil {
		t.Fatal(err)
	}
	return s, o
}

// newPionContext returns Pion's context for packets from the client.
func newPionContext(t testing.TB, p Profile, options ...pion.ContextOption) *pion.Context {
	t.Helper()
	k := testKeys(t, p)
	context, err := pion.CreateContext(k.ClientKey, k.ClientSalt, pion.ProtectionProfile(p), options...)
	if err != nil {
		t.Fatal(err)
	}
	return context
}

// header is a header without extensions.
func header(ssrc uint32, sequence uint16) *rtp.Header {
	return &rtp.Header{Version: 2, PayloadType: 96, SequenceNumber: sequence, Timestamp: 90000, SSRC: ssrc}
}

// fullHeader is a header with all fields except padding.
func fullHeader(t testing.TB, ssrc uint32, sequence uint16) *rtp.Header {
	t.Helper()
	h := header(ssrc, sequence)
	h.Marker, h.CSRC = true, []uint32{1, 2, 3}
	for id, value := range [][]byte{{1}, {2, 3, 4}} {
		if err := h.SetExtension(uint8(id+1), value); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// payloadOf is a payload with the number of its packet.
func payloadOf(index uint64) []byte { return fmt.Appendf(nil, "payload of packet %d", index) }

// mustSeal seals the packet of an index into memory of its own.
func mustSeal(t testing.TB, s *Sealer, ssrc uint32, index uint64) []byte {
	t.Helper()
	sealed, err := s.Seal(make([]byte, 0, 1500), header(ssrc, uint16(index)), payloadOf(index))
	if err != nil {
		t.Fatalf("packet %d: %v", index, err)
	}
	return sealed
}

// mustOpen opens a copy of the packet of an index.
func mustOpen(t testing.TB, o *Opener, sealed []byte, index uint64) {
	t.Helper()
	out, err := o.Open(bytes.Clone(sealed))
	if err != nil {
		t.Fatalf("packet %d: %v", index, err)
	}
	if payload := out[fixedHeaderSize:]; !bytes.Equal(payload, payloadOf(index)) {
		t.Fatalf("packet %d has the payload %q", index, payload)
	}
}

// mustRefuse opens a copy of a packet, which must be refused.
func mustRefuse(t testing.TB, o *Opener, sealed []byte, index uint64, want error) {
	t.Helper()
	if out, err := o.Open(bytes.Clone(sealed)); !errors.Is(err, want) || out != nil {
		t.Fatalf("packet %d gives %d bytes and %v, expected %v", index, len(out), err, want)
	}
}
