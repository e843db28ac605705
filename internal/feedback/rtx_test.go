package feedback

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/pion/rtp"
)

// rtpPacket returns an RTP packet with CSRCs, an extension and padding as requested.
func rtpPacket(t testing.TB, h rtp.Header, payload []byte, padding byte) []byte {
	t.Helper()
	h.Version, h.Padding, h.PaddingSize = 2, padding > 0, padding
	raw, err := (&rtp.Packet{Header: h, Payload: payload}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestRTXRoundTrip(t *testing.T) {
	plain := rtp.Header{Marker: true, PayloadType: 96, SequenceNumber: 0xfffe, Timestamp: 0x01020304, SSRC: 10}
	extended := plain
	extended.CSRC = []uint32{1, 2}
	if err := extended.SetExtension(3, []byte{0xaa, 0xbb}); err != nil {
		t.Fatal(err)
	}
	for name, header := range map[string]rtp.Header{"plain": plain, "extended": extended} {
		for _, padding := range []byte{0, 1, 200} {
			for _, size := range []int{0, 1, 1160} {
				payload := bytes.Repeat([]byte{0x5a}, size)
				rtx := RTX{SSRC: 20, PayloadType: 97, Next: 0xffff}
				h := header
				packed, err := rtx.Pack(make([]byte, size+2), &h, payload)
				if err != nil {
					t.Fatal(err)
				}
				if h.SSRC != 20 || h.PayloadType != 97 || h.SequenceNumber != 0xffff ||
					h.Timestamp != header.Timestamp || !h.Marker || rtx.Next != 0 {
					t.Fatalf("%s: header is %+v, next %d", name, h, rtx.Next)
				}
				packet, want := rtpPacket(t, h, packed, padding), rtpPacket(t, header, payload, 0)
				got := make([]byte, len(want))
				n, err := UnpackRTX(got, packet, 10, 96)
				if err != nil || !bytes.Equal(got[:n], want) {
					t.Fatalf("%s with %d bytes of padding: got % x, expected % x (%v)", name, padding,
						got[:n], want, err)
				}
				if n, err = UnpackRTX(packet, packet, 10, 96); err != nil || !bytes.Equal(packet[:n], want) {
					t.Fatalf("%s in place: got % x, expected % x (%v)", name, packet[:n], want, err)
				}
			}
		}
	}
}

func TestRTXRefuses(t *testing.T) {
	whole := rtpPacket(t, rtp.Header{}, []byte{0, 1, 2}, 0)
	change := func(at int, value byte) []byte {
		packet := bytes.Clone(whole)
		packet[at] = value
		return packet
	}
	tests := []struct {
		name   string
		dst    int
		packet []byte
		want   error
	}{
		{"nothing", 100, nil, ErrRTX},
		{"part of a header", 100, whole[:11], ErrRTX},
		{"version", 100, change(0, 0x40), ErrRTX},
		{"no original number", 100, whole[:13], ErrRTX},
		{"padding only", 100, rtpPacket(t, rtp.Header{}, nil, 224), ErrRTX},
		{"missing sources", 100, change(0, 0x81), ErrRTX},
		{"missing extension", 100, change(0, 0x90), ErrRTX},
		{"long extension", 100, append([]byte{0x90}, append(whole[1:12:12], 0xbe, 0xde, 0, 9, 1, 2, 3, 4)...), ErrRTX},
		{"no padding", 100, append([]byte{0xa0}, append(whole[1:12:12], 1, 2, 0)...), ErrRTX},
		{"much padding", 100, append([]byte{0xa0}, append(whole[1:12:12], 1, 2, 4)...), ErrRTX},
		{"short buffer", 12, whole, ErrBuffer},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if n, err := UnpackRTX(make([]byte, test.dst), test.packet, 1, 2); !errors.Is(err, test.want) || n != 0 {
				t.Fatalf("%d bytes, error is %v", n, err)
			}
		})
	}
	var rtx RTX
	if _, err := rtx.Pack(make([]byte, 4), &rtp.Header{}, make([]byte, 3)); !errors.Is(err, ErrBuffer) ||
		rtx.Next != 0 {
		t.Fatalf("short buffer for packing: %v", err)
	}
}

func TestAnswerable(t *testing.T) {
	for passed, want := range map[time.Duration]bool{0: false, 14: false, 15: true, 25: true} {
		if got := Answerable(start, after(passed*time.Millisecond), 20*time.Millisecond); got != want {
			t.Errorf("a request %d ms after sending: %v", passed, got)
		}
	}
	if !Answerable(start, start, 0) {
		t.Error("without a known round trip every request is answerable")
	}
}

func TestRTXNoAllocations(t *testing.T) {
	payload, dst := make([]byte, 1160), make([]byte, 1200)
	packet := rtpPacket(t, rtp.Header{SequenceNumber: 7}, make([]byte, 1162), 0)
	rtx := RTX{SSRC: 1}
	var h rtp.Header
	if allocations := testing.AllocsPerRun(100, func() {
		if _, err := rtx.Pack(dst, &h, payload); err != nil {
			t.Fatal(err)
		}
		if _, err := UnpackRTX(dst, packet, 1, 2); err != nil {
			t.Fatal(err)
		}
	}); allocations != 0 {
		t.Fatalf("%v allocations", allocations)
	}
}

// FuzzUnpackRTX checks that every accepted packet is an RTP packet with the given SSRC and payload type for another
// parser.
func FuzzUnpackRTX(f *testing.F) {
	f.Add([]byte{})
	f.Add(rtpPacket(f, rtp.Header{SequenceNumber: 1}, []byte{0, 9, 1, 2, 3}, 0))
	f.Add(rtpPacket(f, rtp.Header{SequenceNumber: 1, CSRC: []uint32{5}}, []byte{0, 9, 1, 2, 3}, 7))
	f.Add([]byte{0xbf, 0xff, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0xde, 0, 0, 1, 2, 3, 1})
	f.Fuzz(func(t *testing.T, packet []byte) {
		dst := make([]byte, len(packet))
		n, err := UnpackRTX(dst, packet, 77, 96)
		if err != nil {
			if !errors.Is(err, ErrRTX) && !errors.Is(err, ErrBuffer) {
				t.Fatalf("error is %v", err)
			}
			return
		}
		if n > len(packet)-originalSize {
			t.Fatalf("%d bytes became %d", len(packet), n)
		}
		var h rtp.Header
		size, err := h.Unmarshal(dst[:n])
		if err != nil {
			return // an extension with malformed elements, which UnpackRTX does not parse
		}
		if size > n || h.SSRC != 77 || h.PayloadType != 96 || h.Padding {
			t.Fatalf("header is %+v", h)
		}
	})
}

func BenchmarkRTX(b *testing.B) {
	payload, dst := make([]byte, 1160), make([]byte, 1200)
	rtx := RTX{SSRC: 1}
	var h rtp.Header
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rtx.Pack(dst, &h, payload); err != nil {
			b.Fatal(err)
		}
	}
}
