package feedback

import (
	"testing"

	"github.com/pion/rtp"
)

// packetWith returns an RTP packet with the given extensions, encoded by the RTP library.
func packetWith(t testing.TB, csrcs int, extensions ...[]byte) []byte {
	t.Helper()
	packet := rtp.Packet{Header: rtp.Header{Version: 2, CSRC: make([]uint32, csrcs)}, Payload: []byte{1, 2, 3}}
	for i, extension := range extensions {
		if err := packet.SetExtension(uint8(i+1), extension); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := packet.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestTransportSequence(t *testing.T) {
	for name, test := range map[string]struct {
		packet   []byte
		expected uint16
		ok       bool
	}{
		"alone": {packetWith(t, 0, []byte{7}, []byte{0xab, 0xcd}), 0xabcd, true},
		"behind sources": {packetWith(t, 15, []byte{7}, []byte{0xab, 0xcd}, []byte{1, 2, 3, 4, 5}),
			0xabcd, true},
		"behind a longer one": {packetWith(t, 2, make([]byte, 16), []byte{0, 1}), 1, true},
		"absent":              {packetWith(t, 0, []byte{7}), 0, false},
		"no extension":        {packetWith(t, 0), 0, false},
		"one byte":            {packetWith(t, 0, []byte{7}, []byte{1}), 0, false},
		"three bytes":         {packetWith(t, 0, []byte{7}, []byte{1, 2, 3}), 0, false},
		"two-byte header":     {packetWith(t, 0, make([]byte, 17), []byte{1, 2}), 0, false},
		"identifier 0 with size": {[]byte{0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0xde, 0, 1, 0x01, 0x21, 1, 2}, 0,
			false},
		"after the end": {[]byte{0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0xde, 0, 1, 0xf0, 0x21, 1, 2}, 0, false},
		"after padding": {[]byte{0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0xde, 0, 1, 0, 0x21, 1, 2}, 0x0102, true},
		"over the end": {[]byte{0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0xde, 0, 1, 0, 0, 0x21, 1, 2, 3}, 0,
			false},
		"words missing": {[]byte{0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0xde, 0, 2, 0x21, 1, 2, 3}, 0, false},
		"version 1":     {[]byte{0x50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0xde, 0, 1, 0x21, 1, 2, 3}, 0, false},
		"empty":         {nil, 0, false},
	} {
		if got, ok := TransportSequence(test.packet, 2); got != test.expected || ok != test.ok {
			t.Errorf("%s: %#x, %t", name, got, ok)
		}
	}
}

func TestSetTransportSequence(t *testing.T) {
	header := rtp.Header{Version: 2}
	if err := header.SetExtension(3, []byte{1, 2, 3, 4}); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 1500)
	for _, sequence := range []uint16{0, 1, 0xffff, 0x1234} {
		if err := SetTransportSequence(&header, 5, sequence); err != nil {
			t.Fatal(err)
		}
		n, err := header.MarshalTo(buffer)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := TransportSequence(buffer[:n], 5); got != sequence || !ok {
			t.Fatalf("%d became %d, %t", sequence, got, ok)
		}
	}
	if allocations := testing.AllocsPerRun(100, func() {
		if err := SetTransportSequence(&header, 5, 77); err != nil {
			t.Fatal(err)
		}
	}); allocations != 0 {
		t.Errorf("%.1f allocations per packet", allocations)
	}
	for _, id := range []uint8{0, 15} {
		if err := SetTransportSequence(&header, id, 1); err == nil {
			t.Errorf("identifier %d is taken", id)
		}
	}
}

// FuzzTransportSequence checks that the result agrees with the RTP library for every packet that the library accepts.
func FuzzTransportSequence(f *testing.F) {
	f.Add(packetWith(f, 0, []byte{7}, []byte{0xab, 0xcd}), uint8(2))
	f.Add(packetWith(f, 15, make([]byte, 16), []byte{0xab, 0xcd}, []byte{1, 2, 3, 4, 5}), uint8(2))
	f.Add(packetWith(f, 0, make([]byte, 17), []byte{1, 2}), uint8(2))
	f.Add([]byte{0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0xde, 0, 1, 0, 0, 0x21, 1, 2, 3}, uint8(2))
	f.Fuzz(func(t *testing.T, packet []byte, id uint8) {
		id = id%14 + 1
		got, ok := TransportSequence(packet, id)
		var header rtp.Header
		if _, err := header.Unmarshal(packet); err != nil || header.Version != 2 ||
			header.ExtensionProfile != oneByteProfile {
			return
		}
		for _, each := range header.GetExtensionIDs() {
			if each == 0 {
				return // the library continues here, against RFC 8285 section 4.2
			}
		}
		extension := header.GetExtension(id)
		if ok != (len(extension) == 2) || ok && got != uint16(extension[0])<<8|uint16(extension[1]) {
			t.Fatalf("%d, %t, but the library reads %x", got, ok, extension)
		}
	})
}
