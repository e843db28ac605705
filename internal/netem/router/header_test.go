package router

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/volsfu/volsfu/internal/ecn"
)

// packet returns an IPv4 packet with a correct checksum.
func packet(tos byte, protocol byte, fragment uint16, source, destination uint32, payload ...byte) []byte {
	p := make([]byte, headerBytes, headerBytes+len(payload))
	p[0], p[1], p[8], p[9] = 0x45, tos, 64, protocol
	binary.BigEndian.PutUint16(p[2:], uint16(headerBytes+len(payload)))
	binary.BigEndian.PutUint16(p[6:], fragment)
	binary.BigEndian.PutUint32(p[12:], source)
	binary.BigEndian.PutUint32(p[16:], destination)
	binary.BigEndian.PutUint16(p[10:], checksum(p))
	return append(p, payload...)
}

// checksum computes the checksum of a header (RFC 791), with the field itself as 0.
func checksum(header []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < headerBytes; i += 2 {
		if i != 10 {
			sum += uint32(binary.BigEndian.Uint16(header[i:]))
		}
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

func TestSetECNKeepsTheChecksum(t *testing.T) {
	for tos := range 256 {
		for _, address := range []uint32{0, 0xc6120001, 0xffffffff, 0x80007fff} {
			for codepoint := ecn.NotECT; codepoint <= ecn.CE; codepoint++ {
				p := packet(byte(tos), protocolUDP, 0, address, ^address*3)
				setECN(p, codepoint)
				if got, expected := binary.BigEndian.Uint16(p[10:]),
					checksum(p); got != expected || p[1] != byte(tos)&^3|byte(codepoint) {
					t.Fatalf("type of service %#x to ECN %d: checksum %#x and type %#x, "+
						"expected %#x", tos, codepoint, got,
						p[1], expected)
				}
			}
		}
	}
}

func TestParse(t *testing.T) {
	p := packet(0xb9, protocolUDP, 0, 0xc6120001, 0xc6120002, 0x13, 0x88, 0x13, 0x89)
	h, ok := parse(p)
	want := pair{mapped([]byte{198, 18, 0, 1}), mapped([]byte{198, 18, 0, 2})}
	if !ok || h.pair != want || h.ecn != ecn.ECT1 {
		t.Errorf("%+v, %v", h, ok)
	}
	for name, other := range map[string][]byte{
		"another port":     packet(0xb9, protocolUDP, 0, 0xc6120001, 0xc6120002, 0x13, 0x88, 0x13, 0x90),
		"another protocol": packet(0xb9, protocolTCP, 0, 0xc6120001, 0xc6120002, 0x13, 0x88, 0x13, 0x89),
		"another host":     packet(0xb9, protocolUDP, 0, 0xc6120003, 0xc6120002, 0x13, 0x88, 0x13, 0x89),
		"the way back":     packet(0xb9, protocolUDP, 0, 0xc6120002, 0xc6120001, 0x13, 0x89, 0x13, 0x88),
		"a fragment":       packet(0xb9, protocolUDP, 0x2000, 0xc6120001, 0xc6120002, 0x13, 0x88, 0x13, 0x89),
	} {
		if o, ok := parse(other); !ok || o.flow == h.flow {
			t.Errorf("%s: taken for the same flow", name)
		}
	}
	if o, _ := parse(packet(0, protocolUDP, 0, 0xc6120001, 0xc6120002, 0x13, 0x88, 0x13, 0x89, 1, 2, 3)); o.flow !=
		h.flow {
		t.Error("another packet of the same flow is taken for another flow")
	}
	for name, wrong := range map[string][]byte{
		"empty": {}, "short": p[:19], "cut off": p[:22], "version 5": append([]byte{0x50}, p[1:]...),
		"IPv6 cut off":                    packet6(0x20, protocolUDP, 1, 2, 3, 4)[:43],
		"short header":                    append([]byte{0x44}, p[1:]...),
		"longer than the header's length": append([]byte{0x4f}, p[1:]...),
	} {
		if _, ok := parse(wrong); ok {
			t.Errorf("%s: taken for a packet", name)
		}
	}
}

// packet6 returns an IPv6 packet between the addresses 2001:2::1 and 2001:2::2.
func packet6(class byte, protocol byte, payload ...byte) []byte {
	p := make([]byte, header6Bytes, header6Bytes+len(payload))
	p[0], p[1], p[6], p[7] = 0x60|class>>4, class<<4|0x5, protocol, 64
	binary.BigEndian.PutUint16(p[4:], uint16(len(payload)))
	copy(p[8:], []byte{0x20, 1, 0, 2})
	copy(p[24:], p[8:12])
	p[23], p[39] = 1, 2
	return append(p, payload...)
}

func TestParseIPv6(t *testing.T) {
	ports := []byte{0x13, 0x88, 0x13, 0x89}
	h, ok := parse(packet6(0xb9, protocolUDP, ports...))
	want := pair{address(netip.MustParseAddr("2001:2::1").As16()), address(netip.MustParseAddr("2001:2::2").As16())}
	if !ok || h.pair != want || h.ecn != ecn.ECT1 {
		t.Errorf("%+v, %v", h, ok)
	}
	if o, _ := parse(packet6(0, protocolUDP, append(ports, 1, 2)...)); o.flow != h.flow {
		t.Error("another packet of the same flow is taken for another flow")
	}
	const fragment = 44
	for name, other := range map[string][]byte{
		"another port":     packet6(0xb9, protocolUDP, 0x13, 0x88, 0x13, 0x90),
		"another protocol": packet6(0xb9, protocolTCP, ports...),
		"a fragment":       packet6(0xb9, fragment, ports...),
	} {
		if o, ok := parse(other); !ok || o.flow == h.flow {
			t.Errorf("%s: taken for the same flow", name)
		}
	}
	// Only the codepoint changes: neither the rest of the traffic class nor the flow label.
	for class := range 256 {
		for codepoint := ecn.NotECT; codepoint <= ecn.CE; codepoint++ {
			p := packet6(byte(class), protocolUDP, ports...)
			setECN(p, codepoint)
			if want := packet6(byte(class)&^3|byte(codepoint), protocolUDP, ports...); !bytes.Equal(p, want) {
				t.Fatalf("traffic class %#x to %v: %x, expected %x", class, codepoint, p[:header6Bytes],
					want[:header6Bytes])
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(packet(1, protocolUDP, 0, 1, 2, 3, 4, 5, 6))
	f.Add(packet(2, protocolTCP, 0x2000, 1, 2))
	f.Add([]byte{0x4f, 0, 0, 60})
	f.Add(packet6(1, protocolUDP, 0, 1, 0, 2))
	f.Fuzz(func(t *testing.T, p []byte) {
		h, ok := parse(p)
		if !ok {
			return
		}
		setECN(p, ecn.CE)
		again, ok := parse(p)
		if !ok || again.ecn != ecn.CE || again.flow != h.flow {
			t.Errorf("%+v became %+v", h, again)
		}
	})
}
