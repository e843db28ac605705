package wire

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
)

// inner4 returns an IPv4 packet with a TCP or UDP header.
func inner4(protocol uint8, id uint16, sequence uint32, payload int) []byte {
	header := 8
	if protocol == protocolTCP {
		header = tcpHeader
	}
	b := make([]byte, ipv4Header+header+payload)
	b[0], b[9] = 0x45, protocol
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[4:], id)
	if protocol == protocolTCP {
		binary.BigEndian.PutUint32(b[24:], sequence)
		b[32] = 5 << 4
	}
	return b
}

// inner6 returns an IPv6 packet with a TCP header.
func inner6(sequence uint32, payload int) []byte {
	b := make([]byte, ipv6Header+tcpHeader+payload)
	b[0], b[6], b[52] = 6<<4, protocolTCP, 5<<4
	binary.BigEndian.PutUint16(b[4:], uint16(tcpHeader+payload))
	binary.BigEndian.PutUint32(b[44:], sequence)
	return b
}

func TestHeader(t *testing.T) {
	want := Header{Kind: KindSequence, Path: 5, Set: 0x21, Flow: 0x12, End: 0x3456, Epoch: 0x789a, Base: 0xbcdef012,
		Sent: 0x3456789a}
	b := want.Append([]byte("x"))
	if string(b) != "x\x12\x05\x21\x12\x34\x56\x78\x9a\xbc\xde\xf0\x12\x34\x56\x78\x9a" {
		t.Errorf("encoded % x", b)
	}
	if got, err := ParseHeader(b[1:]); err != nil || got != want {
		t.Errorf("decoded %+v, %v, want %+v", got, err, want)
	}
	for _, change := range []struct {
		name  string
		at    int
		value byte
	}{{"version", 1, 0x22}, {"kind", 1, 0x13}, {"hello", 1, 0x18}, {"path", 2, 8}} {
		changed := append([]byte(nil), b...)
		changed[change.at] = change.value
		if _, err := ParseHeader(changed[1:]); !errors.Is(err, ErrHeader) {
			t.Errorf("%s: %v, want ErrHeader", change.name, err)
		}
	}
	if _, err := ParseHeader(b[1:HeaderSize]); !errors.Is(err, ErrHeader) {
		t.Errorf("15 bytes: %v, want ErrHeader", err)
	}
}

// TestNumberByID numbers segments across both wraps: that of the identification and that of the number.
func TestNumberByID(t *testing.T) {
	for _, base := range []uint32{0, 0x0001fff0, 0xfffffff0} {
		h := Header{Kind: KindID, Base: base}
		for i := range uint32(64) {
			got, err := h.Number(inner4(17, uint16(base+i), 0, 100))
			if err != nil || got != base+i {
				t.Fatalf("segment %d of base %#x: number %#x, %v, want %#x", i, base, got, err, base+i)
			}
		}
	}
	h := Header{Kind: KindID}
	if _, err := h.Number(inner6(0, 1)); !errors.Is(err, ErrHeader) {
		t.Errorf("IPv6 has no identification: %v, want ErrHeader", err)
	}
}

// TestNumberBySequence cuts random super-packets into segments, as the network stack does, and numbers the segments.
func TestNumberBySequence(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		size := 1 + random.IntN(1460)
		total := size + 1 + random.IntN(min(65495-size, 60*size))
		first, sequence := random.Uint32(), random.Uint32()
		segments := uint32((total + size - 1) / size)
		h := Header{Kind: KindSequence, Base: first + segments - 1, End: uint16(sequence + uint32(total))}
		for i := range segments {
			offset := int(i) * size
			payload := min(size, total-offset)
			at := sequence + uint32(offset)
			for _, inner := range [][]byte{inner4(protocolTCP, 0, at, payload), inner6(at, payload)} {
				if got, err := h.Number(inner); err != nil || got != first+i {
					t.Fatalf("segment %d of %d (%d of %d bytes): number %d, %v, want %d", i, segments, payload, total,
						got, err, first+i)
				}
			}
		}
	}
	h := Header{Kind: KindSequence}
	for name, inner := range map[string][]byte{
		"UDP": inner4(17, 0, 0, 100), "no payload": inner4(protocolTCP, 0, 0, 0), "nothing": nil,
	} {
		if _, err := h.Number(inner); !errors.Is(err, ErrHeader) {
			t.Errorf("%s: %v, want ErrHeader", name, err)
		}
	}
}

// FuzzHeader checks that any bytes give an error or a header that encodes to the same bytes, with a number for any
// inner packet.
func FuzzHeader(f *testing.F) {
	h := Header{Kind: KindSequence, Path: 1, Set: 3, Base: 7}
	f.Add(append(h.Append(nil), inner4(protocolTCP, 1, 2, 3)...))
	h.Kind = KindID
	f.Add(append(h.Append(nil), inner4(17, 1, 0, 3)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeader(b)
		if err != nil {
			if !errors.Is(err, ErrHeader) {
				t.Fatalf("%v is no ErrHeader", err)
			}
			return
		}
		if again := h.Append(nil); string(again) != string(b[:HeaderSize]) {
			t.Fatalf("% x became % x", b[:HeaderSize], again)
		}
		if _, err := h.Number(b[HeaderSize:]); err != nil && !errors.Is(err, ErrHeader) {
			t.Fatalf("%v is no ErrHeader", err)
		}
	})
}
