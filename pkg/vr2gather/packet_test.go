package vr2gather_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

func TestPacketLayout(t *testing.T) {
	cases := map[string]struct {
		packet vr2gather.Packet
		want   []byte
	}{
		"video": {
			vr2gather.Packet{
				Kind:    volumetric.KindVideo,
				Client:  1,
				Frame:   0x01020304,
				Length:  5,
				Offset:  2,
				Tile:    6,
				Quality: 7,
				Data:    []byte{8, 9},
			},
			[]byte{1, 0, 0, 0, 4, 3, 2, 1, 5, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 6, 0, 0, 0, 7, 0, 0, 0, 8, 9},
		},
		"audio": {
			vr2gather.Packet{Kind: volumetric.KindAudio, Client: 2, Frame: 3, Length: 3, Data: []byte{4, 5, 6}},
			[]byte{2, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4, 5, 6},
		},
	}
	for name, c := range cases {
		got, err := c.packet.Append([]byte{0xee})
		if err != nil || !bytes.Equal(got[1:], c.want) {
			t.Errorf("%s: got % x and %v, want % x", name, got[1:], err, c.want)
		}
		parsed, err := vr2gather.ParsePacket(c.packet.Kind, append(c.want, 0, 0, 0))
		if err != nil || !equalPackets(&parsed, &c.packet) {
			t.Errorf("%s: got %+v and %v, want %+v", name, parsed, err, c.packet)
		}
	}
}

// equalPackets compares all fields and the data.
func equalPackets(a, b *vr2gather.Packet) bool {
	return a.Kind == b.Kind && a.Client == b.Client && a.Frame == b.Frame && a.Length == b.Length &&
		a.Offset == b.Offset &&
		a.Tile == b.Tile &&
		a.Quality == b.Quality &&
		bytes.Equal(a.Data, b.Data)
}

func TestPacketMalformed(t *testing.T) {
	whole := vr2gather.Packet{
		Kind:   volumetric.KindVideo,
		Client: 1,
		Length: 2000,
		Data:   make([]byte, vr2gather.MaxVideoData),
	}
	payload, err := whole.Append(nil)
	if err != nil || len(payload) != vr2gather.MaxPacketSize {
		t.Fatalf("%d bytes and %v, want %d", len(payload), err, vr2gather.MaxPacketSize)
	}
	with := func(field int, value uint32, room int) []byte {
		spoilt := append(bytes.Clone(payload), make([]byte, room)...)
		binary.LittleEndian.PutUint32(spoilt[4*field:], value)
		return spoilt
	}
	cases := map[string]struct {
		payload []byte
		says    string
	}{
		"nothing":             {nil, "0 bytes of video, expected at least 28"},
		"half a header":       {payload[:27], "27 bytes of video"},
		"data missing":        {payload[:len(payload)-1], "announces 1144 bytes of data, 1143 follow"},
		"data beyond limit":   {with(4, 1145, 1), "1145 bytes of data, expected at most 1144"},
		"absurd data":         {with(4, 0xffffffff, 0), "announces 4294967295 bytes"},
		"no data":             {with(4, 0, 0), "no data, of a frame of 2000 bytes"},
		"outside the frame":   {with(3, 857, 0), "1144 bytes at 857 of a frame of 2000"},
		"offset wraps around": {with(3, 0xffffffff, 0), "1144 bytes at 4294967295"},
		"frame of no bytes":   {with(2, 0, 0), "of a frame of 0"},
	}
	for name, c := range cases {
		if _, err := vr2gather.ParsePacket(
			volumetric.KindVideo,
			c.payload,
		); !errors.Is(err, vr2gather.ErrPacket) ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want ErrPacket that says %q", name, err, c.says)
		}
	}
	whole.Data = make([]byte, vr2gather.MaxVideoData+1)
	if got, err := whole.Append([]byte{1}); !errors.Is(err, vr2gather.ErrPacket) || len(got) != 1 {
		t.Errorf("got %d bytes and %v, want ErrPacket and what there was", len(got), err)
	}
}

func TestCut(t *testing.T) {
	for _, kind := range []volumetric.Kind{volumetric.KindVideo, volumetric.KindAudio} {
		limit := vr2gather.MaxData(kind)
		for _, size := range []int{0, 1, limit, limit + 1, 5*limit - 1, 5 * limit} {
			data := make([]byte, size)
			for i := range data {
				data[i] = byte(i * 7)
			}
			var joined []byte
			packets, firsts, lasts := 0, 0, 0
			for p := range vr2gather.Cut(vr2gather.Packet{Kind: kind, Client: 3, Frame: 9}, data) {
				payload, err := p.Append(nil)
				parsed, parseErr := vr2gather.ParsePacket(kind, payload)
				if err != nil || parseErr != nil || len(payload) > vr2gather.MaxPacketSize ||
					int(parsed.Offset) != len(joined) ||
					parsed.Frame != 9 {
					t.Fatalf(
						"%s of %d bytes: packet of %d bytes at %d with %v, %v",
						kind,
						size,
						len(payload),
						parsed.Offset,
						err,
						parseErr,
					)
				}
				if joined = append(joined, parsed.Data...); parsed.First() {
					firsts++
				}
				if packets++; parsed.Last() {
					lasts++
				}
			}
			if want := (size + limit - 1) / limit; packets != want || firsts != min(want, 1) || lasts != min(want, 1) ||
				!bytes.Equal(joined, data) {
				t.Errorf(
					"%s of %d bytes: %d packets (%d first, %d last) with %d bytes, want %d",
					kind,
					size,
					packets,
					firsts,
					lasts,
					len(joined),
					want,
				)
			}
		}
	}
	for range vr2gather.Cut(vr2gather.Packet{Kind: volumetric.KindVideo}, make([]byte, 5000)) {
		break // a loop that ends early reads no more packets
	}
}

func TestSetFrame(t *testing.T) {
	p := vr2gather.Packet{
		Kind:    volumetric.KindVideo,
		Client:  1,
		Frame:   2,
		Length:  1,
		Tile:    3,
		Quality: 4,
		Data:    []byte{5},
	}
	payload, err := p.Append(nil)
	if err != nil || !vr2gather.SetFrame(payload, 0xfffffffe) {
		t.Fatalf("payload of %d bytes was refused, %v", len(payload), err)
	}
	p.Frame = 0xfffffffe
	if parsed, err := vr2gather.ParsePacket(volumetric.KindVideo, payload); err != nil || !equalPackets(&parsed, &p) {
		t.Errorf("got %+v and %v, want %+v", parsed, err, p)
	}
	if vr2gather.SetFrame(payload[:19], 1) {
		t.Error("a payload of 19 bytes was taken")
	}
}

func FuzzPacket(f *testing.F) {
	for _, kind := range []volumetric.Kind{volumetric.KindVideo, volumetric.KindAudio} {
		p := vr2gather.Packet{Kind: kind, Client: 1, Frame: 7, Length: 10, Offset: 4, Data: []byte{1, 2, 3}}
		payload, err := p.Append(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(payload, kind == volumetric.KindAudio)
	}
	f.Add(bytes.Repeat([]byte{0xff}, 40), false)
	f.Add(make([]byte, vr2gather.MaxDatagram), true)
	f.Fuzz(func(t *testing.T, payload []byte, audio bool) {
		kind := volumetric.KindVideo
		if audio {
			kind = volumetric.KindAudio
		}
		p, err := vr2gather.ParsePacket(kind, payload)
		if err != nil {
			if !errors.Is(err, vr2gather.ErrPacket) {
				t.Fatal(err)
			}
			return
		}
		again, err := p.Append(nil)
		if err != nil || !bytes.HasPrefix(payload, again) || len(again) > vr2gather.MaxPacketSize {
			t.Fatalf("% x was read as % x, %v", payload, again, err)
		}
	})
}
