package vr2gather_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

func TestDatagram(t *testing.T) {
	ready, err := vr2gather.Datagram{Type: vr2gather.DatagramReady}.Append(nil)
	if err != nil || !bytes.Equal(ready, make([]byte, vr2gather.DatagramSize)) {
		t.Errorf("got %d bytes and %v, want %d zeros", len(ready), err, vr2gather.DatagramSize)
	}
	control, err := vr2gather.Datagram{Type: vr2gather.DatagramControl, Body: []byte("1,0;")}.Append(nil)
	if err != nil || len(control) != vr2gather.DatagramSize ||
		!bytes.HasPrefix(control, []byte{3, 0, 0, 0, '1', ',', '0', ';', 0}) {
		t.Errorf("got % x and %v", control[:16], err)
	}
	if parsed, err := vr2gather.ParseDatagram(
		control,
	); err != nil || parsed.Type != vr2gather.DatagramControl ||
		parsed.Text() != "1,0;" {
		t.Errorf("got type %d, %q and %v", parsed.Type, parsed.Text(), err)
	}
	if got, err := (vr2gather.Datagram{Body: make([]byte, 1297)}).Append(
		[]byte{1},
	); !errors.Is(err, vr2gather.ErrDatagram) ||
		len(got) != 1 {
		t.Errorf("got %d bytes and %v, want ErrDatagram", len(got), err)
	}
}

func TestDatagramMalformed(t *testing.T) {
	for name, datagram := range map[string][]byte{
		"nothing": nil, "three bytes": {1, 0, 0}, "unknown type": {4, 0, 0, 0}, "type in network order": {0, 0, 0, 1},
		"too long": make([]byte, 1501),
	} {
		if _, err := vr2gather.ParseDatagram(datagram); !errors.Is(err, vr2gather.ErrDatagram) {
			t.Errorf("%s: got %v, want ErrDatagram", name, err)
		}
	}
	if _, err := (vr2gather.Datagram{Type: vr2gather.DatagramControl, Body: make([]byte, 1296)}).Packet(); !errors.Is(
		err,
		vr2gather.ErrDatagram,
	) {
		t.Errorf("got %v, want ErrDatagram: a control datagram carries no packet", err)
	}
	if _, err := (vr2gather.Datagram{Type: vr2gather.DatagramTile, Body: make([]byte, 27)}).Packet(); !errors.Is(
		err,
		vr2gather.ErrPacket,
	) {
		t.Errorf("got %v, want ErrPacket", err)
	}
}

func TestPacketDatagram(t *testing.T) {
	for _, kind := range []volumetric.Kind{volumetric.KindVideo, volumetric.KindAudio} {
		want := vr2gather.Packet{
			Kind:   kind,
			Client: 1,
			Frame:  2,
			Length: 5000,
			Offset: 1144,
			Data:   bytes.Repeat([]byte{7}, vr2gather.MaxData(kind)),
		}
		datagram, err := vr2gather.AppendPacketDatagram([]byte{9}, &want)
		if err != nil || len(datagram) != 1+vr2gather.DatagramSize {
			t.Fatalf("%s: %d bytes and %v", kind, len(datagram), err)
		}
		parsed, err := vr2gather.ParseDatagram(datagram[1:])
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parsed.Packet(); err != nil || !equalPackets(&got, &want) {
			t.Errorf("%s: got %+v and %v, want %+v", kind, got, err, want)
		}
	}
	spoilt := vr2gather.Packet{Kind: volumetric.KindVideo, Length: 1, Offset: 1, Data: []byte{1}}
	if got, err := vr2gather.AppendPacketDatagram(
		[]byte{9},
		&spoilt,
	); !errors.Is(err, vr2gather.ErrPacket) ||
		len(got) != 1 {
		t.Errorf("got %d bytes and %v, want ErrPacket", len(got), err)
	}
}

func FuzzDatagram(f *testing.F) {
	packet := vr2gather.Packet{Kind: volumetric.KindVideo, Client: 1, Length: 3, Data: []byte{1, 2, 3}}
	tile, err := vr2gather.AppendPacketDatagram(nil, &packet)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(tile)
	f.Add(make([]byte, vr2gather.DatagramSize))
	f.Add([]byte{3, 0, 0, 0, '1', ',', '2'})
	f.Add(bytes.Repeat([]byte{2, 0, 0, 0}, 12))
	f.Fuzz(func(t *testing.T, datagram []byte) {
		d, err := vr2gather.ParseDatagram(datagram)
		if err != nil {
			if !errors.Is(err, vr2gather.ErrDatagram) {
				t.Fatal(err)
			}
			return
		}
		if len(d.Text()) > len(d.Body) {
			t.Fatalf("text of %d bytes in a body of %d", len(d.Text()), len(d.Body))
		}
		p, err := d.Packet()
		if err != nil {
			if !errors.Is(err, vr2gather.ErrPacket) && !errors.Is(err, vr2gather.ErrDatagram) {
				t.Fatal(err)
			}
			return
		}
		again, err := vr2gather.AppendPacketDatagram(nil, &p)
		if err != nil || !bytes.HasPrefix(datagram, again[:4+vr2gather.HeaderSize(p.Kind)+len(p.Data)]) {
			t.Fatalf("% x was read as %+v, %v", datagram, p, err)
		}
	})
}
