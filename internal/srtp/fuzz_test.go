package srtp

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// protect seals a packet with any header, as its peer would, at rollover counter 0.
func protect(t testing.TB, s *Sealer, packet []byte) []byte {
	t.Helper()
	size := headerSize(packet)
	sealed := append(bytes.Clone(packet), make([]byte, s.tagSize)...)
	err := s.transform.seal(sealed, size, packet[size:], binary.BigEndian.Uint32(packet[8:]),
		uint64(binary.BigEndian.Uint16(packet[2:])))
	if err != nil {
		return nil // Pion parses extensions, too, and found them malformed
	}
	return sealed
}

// FuzzOpen opens arbitrary packets, directly or protected before: an accepted packet seals to the same bytes again.
func FuzzOpen(f *testing.F) {
	for i, packet := range packetKinds(f) {
		raw, err := packet.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), raw, true)
		for n, p := range profiles {
			sealer, _ := newPair(f, p, 64)
			f.Add(uint8(n), protect(f, sealer, raw), false)
		}
	}
	f.Add(uint8(0), []byte{0x9f, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}, false)
	f.Add(uint8(0), []byte{0x90, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0xbe, 0xde, 0xff, 0xff}, false)
	f.Fuzz(func(t *testing.T, profile uint8, packet []byte, genuine bool) {
		sealer, opener := newPair(t, profiles[int(profile)%len(profiles)], 64)
		if genuine && headerSize(packet) > 0 {
			packet = protect(t, sealer, packet)
		}
		opened, err := opener.Open(bytes.Clone(packet))
		if err != nil {
			if len(opener.opened.bySSRC) != 0 {
				t.Fatalf("a packet that is refused (%v) made state", err)
			}
			return
		}
		if again := protect(t, sealer, opened); !bytes.Equal(again, packet) {
			t.Fatalf("%x opened to %x, which seals to %x", packet, opened, again)
		}
		if _, err := opener.Open(bytes.Clone(packet)); err != ErrReplayed {
			t.Fatalf("opened again: %v", err)
		}
	})
}

// FuzzOpenRTCP opens arbitrary packets, directly or protected before: an accepted packet seals to the same bytes again.
func FuzzOpenRTCP(f *testing.F) {
	f.Add(uint8(0), compound(f, 1), uint32(0), true)
	f.Add(uint8(2), compound(f, 1), uint32(1<<31-2), true)
	for n, p := range profiles {
		sealer, _ := newPair(f, p, 64)
		sealed, err := sealer.SealRTCP(make([]byte, 0, 200), compound(f, 1))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(n), sealed, uint32(0), false)
		f.Add(uint8(n), sealed[len(sealed)-sealer.OverheadRTCP()-rtcpHeaderSize:], uint32(0), false)
	}
	f.Fuzz(func(t *testing.T, profile uint8, packet []byte, index uint32, genuine bool) {
		sealer, opener := newPair(t, profiles[int(profile)%len(profiles)], 64)
		if genuine && len(packet) >= rtcpHeaderSize {
			sealer.rtcp.SetIndex(binary.BigEndian.Uint32(packet[4:]), index)
			if sealed, err := sealer.SealRTCP(make([]byte, 0, len(packet)+sealer.OverheadRTCP()), packet); err == nil {
				packet = sealed
			}
		}
		opened, err := opener.OpenRTCP(bytes.Clone(packet))
		if err != nil {
			if len(opener.openedRTCP.bySSRC) != 0 {
				t.Fatalf("a packet that is refused (%v) made state", err)
			}
			return
		}
		for ssrc, w := range opener.openedRTCP.bySSRC {
			sealer.rtcp.SetIndex(ssrc, uint32(w.highest-1))
		}
		again, err := sealer.SealRTCP(make([]byte, 0, len(packet)), opened)
		if err != nil || !bytes.Equal(again, packet) {
			t.Fatalf("%x opened to %x, which seals to %x, %v", packet, opened, again, err)
		}
		if _, err := opener.OpenRTCP(bytes.Clone(packet)); err != ErrReplayed {
			t.Fatalf("opened again: %v", err)
		}
	})
}
