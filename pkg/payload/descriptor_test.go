package payload

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

func TestDescriptorLayout(t *testing.T) {
	d := Descriptor{
		Prefixed: true,
		Quality:  2,
		Index:    0x0102,
		Source:   0x0304,
		Parity:   0x0506,
		Frame:    0x0708090a,
		Length:   0x0b0c0d0e,
	}
	want := []byte{0x11, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
	var got [DescriptorSize]byte
	if n, err := d.MarshalTo(got[:]); n != DescriptorSize || err != nil {
		t.Fatalf("MarshalTo = %d, %v", n, err)
	}
	if !bytes.Equal(got[:], want) {
		t.Fatalf("got % x, expected % x", got, want)
	}
	if _, err := d.MarshalTo(got[:15]); !errors.Is(err, ErrBuffer) {
		t.Fatalf("short buffer: %v", err)
	}
}

func TestDescriptorUnmarshal(t *testing.T) {
	// build changes a valid packet: 2,000 bytes, fragment 1 of 2 with 3 parity fragments.
	build := func(change func(d *Descriptor), size int) []byte {
		d := Descriptor{Quality: 1, Index: 1, Source: 2, Parity: 3, Frame: 7, Length: 2000}
		change(&d)
		packet := make([]byte, DescriptorSize+size)
		if _, err := d.MarshalTo(packet); err != nil {
			t.Fatal(err)
		}
		return packet
	}
	set := func(packet []byte, first byte) []byte {
		packet[0] = first
		return packet
	}
	same := func(*Descriptor) {}
	empty := func(d *Descriptor) { *d = Descriptor{Source: 1} }
	tests := []struct {
		name   string
		packet []byte
		ok     bool
	}{
		{"last source fragment", build(same, 856), true},
		{"one byte short", build(same, 855), false},
		{"one byte long", build(same, 857), false},
		{"first source fragment", build(func(d *Descriptor) { d.Index = 0 }, 1144), true},
		{"first source fragment short", build(func(d *Descriptor) { d.Index = 0 }, 856), false},
		{"parity fragment", build(func(d *Descriptor) { d.Index = 4 }, 1144), true},
		{"short parity fragment", build(func(d *Descriptor) { d.Index = 4 }, 856), false},
		{"beyond the last", build(func(d *Descriptor) { d.Index = 5 }, 1144), false},
		{"source too low", build(func(d *Descriptor) { d.Source = 1; d.Index = 0 }, 1144), false},
		{"source too high", build(func(d *Descriptor) { d.Source = 3 }, 1144), false},
		{"source zero", build(func(d *Descriptor) { d.Source = 0; d.Length = 0; d.Index = 0 }, 0), false},
		{"empty frame", build(empty, 0), true},
		{"empty frame with data", build(empty, 1), false},
		{
			"empty prefixed frame",
			build(func(d *Descriptor) { *d = Descriptor{Prefixed: true, Source: 1, Length: 12} }, 12),
			true,
		},
		{
			"too short for its prefix",
			build(func(d *Descriptor) { *d = Descriptor{Prefixed: true, Source: 1, Length: 11} }, 11),
			false,
		},
		{"most parity", build(func(d *Descriptor) { d.Parity = 254 }, 856), true},
		{"too much parity", build(func(d *Descriptor) { d.Parity = 255 }, 856), false},
		{
			"length beyond all fragments",
			build(func(d *Descriptor) { d.Length = 0xffffffff; d.Source = 0xffff }, 1144),
			false,
		},
		{"version 0", set(build(same, 856), 0), false},
		{"version 2", set(build(same, 856), 0x20), false},
		{"reserved flags", set(build(same, 856), 0x1e), true},
		{"no descriptor", make([]byte, 15), false},
		{"nothing", nil, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var d Descriptor
			rest, err := d.Unmarshal(test.packet)
			if test.ok != (err == nil) || err != nil && !errors.Is(err, ErrDescriptor) {
				t.Fatalf("error is %v", err)
			}
			if test.ok && len(rest) != len(test.packet)-DescriptorSize {
				t.Fatalf("%d bytes of data", len(rest))
			}
		})
	}
}

func TestPrefix(t *testing.T) {
	capture := time.Date(2026, 11, 20, 15, 30, 0, 123456789, time.UTC)
	data := append(Prefix{FourCC: [4]byte{'d', 'r', 'c', 'o'}, Capture: capture}.AppendTo(nil), 1, 2, 3)
	var p Prefix
	rest, err := p.Unmarshal(data)
	if err != nil || string(p.FourCC[:]) != "drco" || !p.Capture.Equal(capture) || !bytes.Equal(rest, []byte{1, 2, 3}) {
		t.Fatalf("got %s %v % x, %v", p.FourCC[:], p.Capture, rest, err)
	}
	if _, err := p.Unmarshal(data[:11]); !errors.Is(err, ErrPrefix) {
		t.Fatalf("short prefix: %v", err)
	}
}

func TestNTP64(t *testing.T) {
	tests := []struct {
		name string
		time time.Time
		ntp  uint64
	}{
		{"unknown", time.Time{}, 0},
		// RFC 5905 figure 4: Unix time begins at NTP second 2,208,988,800.
		{"Unix epoch", time.Unix(0, 0), 2208988800 << 32},
		{"half a second", time.Unix(0, 5e8), 2208988800<<32 | 1<<31},
		{"last second of era 0", time.Date(2036, 2, 7, 6, 28, 15, 0, time.UTC), 0xffffffff << 32},
		{"era 1", time.Date(2036, 2, 7, 6, 28, 17, 0, time.UTC), 1 << 32},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := NTP64(test.time); got != test.ntp {
				t.Errorf("NTP64 = %#x, expected %#x", got, test.ntp)
			}
			if got := TimeFromNTP64(test.ntp); !got.Equal(test.time) {
				t.Errorf("TimeFromNTP64 = %v, expected %v", got, test.time)
			}
		})
	}
	for nanoseconds := int64(0); nanoseconds < 1e9; nanoseconds += 999_983 {
		at := time.Unix(1_795_188_600, nanoseconds)
		if got := TimeFromNTP64(NTP64(at)); !got.Equal(at) {
			t.Fatalf("%v became %v", at, got)
		}
	}
	if at := time.Unix(1_795_188_600, 999_999_999); !TimeFromNTP64(NTP64(at)).Equal(at) {
		t.Fatal("the last nanosecond of a second does not survive")
	}
}

func FuzzDescriptor(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0x10, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0})
	f.Add(append([]byte{0x11, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 12}, "drco\xed\x01\x02\x03\x04\x05\x06\x07"...))
	f.Add(append([]byte{0x10, 1, 0, 2, 0, 2, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 5, 0}, make([]byte, FragmentSize)...))
	f.Add([]byte{0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, packet []byte) {
		var d Descriptor
		rest, err := d.Unmarshal(packet)
		if err != nil {
			if !errors.Is(err, ErrDescriptor) {
				t.Fatalf("error does not wrap ErrDescriptor: %v", err)
			}
			return
		}
		if len(rest) > FragmentSize || int(d.Index) >= d.Packets() || len(rest) != d.DataSize() {
			t.Fatalf("%+v accepted with %d bytes", d, len(rest))
		}
		again := make([]byte, DescriptorSize)
		if _, err := d.MarshalTo(again); err != nil {
			t.Fatal(err)
		}
		again[0] |= packet[0] & 0x0e // reserved flags are ignored
		if !bytes.Equal(again, packet[:DescriptorSize]) {
			t.Fatalf("% x became % x", packet[:DescriptorSize], again)
		}
	})
}
