package bridge

import (
	"bytes"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// datagrams returns the datagrams of a frame as a connector sends them.
func datagrams(t testing.TB, frame vr2gather.Packet, data []byte) [][]byte {
	t.Helper()
	var list [][]byte
	for p := range vr2gather.Cut(frame, data) {
		datagram, err := vr2gather.AppendPacketDatagram(nil, &p)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, datagram)
	}
	return list
}

func TestInletReadsFramesAndChoices(t *testing.T) {
	tally := &Tally{}
	i := NewInlet(home, Layout{Tiles: 9, Qualities: 3}, true, tally)
	tile, voice := someFrame(100_000, 1), someFrame(2000, 2)
	var frames []*Frame
	list := datagrams(t, vr2gather.Packet{Kind: volumetric.KindVideo, Tile: 8, Quality: 2}, tile)
	list = append(list, datagrams(t, vr2gather.Packet{Kind: volumetric.KindAudio, Frame: 3}, voice)...)
	for _, datagram := range list {
		if a := i.Receive(home, datagram, start); a.Frame != nil {
			frames = append(frames, a.Frame)
		}
		clear(datagram) // the memory is reused for the next datagram
	}
	if len(frames) != 2 || !bytes.Equal(frames[0].Data, tile) || !bytes.Equal(frames[1].Data, voice) {
		t.Fatalf("%d frames, expected a tile and sound as they were sent", len(frames))
	}
	if f := frames[0]; f.Tile != 8 || f.Quality != 2 || f.Track != 26 || f.Header.FourCC != vr2gather.CodecRawPoints ||
		f.Kind != volumetric.KindVideo {
		t.Errorf("the tile is %+v", f)
	}
	control, err := vr2gather.Datagram{Type: vr2gather.DatagramControl, Body: []byte("0,1,2")}.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if a := i.Receive(home, control, start); !a.Chosen || a.Choices != "0,1,2" {
		t.Errorf("a quality message is read as %+v", a)
	}
	want := InletCounts{Datagrams: int64(len(list)) + 1, Frames: 1, FrameBytes: 100_000, AudioFrames: 1}
	if i.Counts() != want {
		t.Errorf("counts are %+v, expected %+v", i.Counts(), want)
	}
	expectDropped(t, tally, nil)
}

func TestInletDropsForeignDatagrams(t *testing.T) {
	good := datagrams(t, vr2gather.Packet{Kind: volumetric.KindVideo, Tile: 1}, someFrame(500, 1))[0]
	changed := func(at int, v byte) []byte {
		d := bytes.Clone(good)
		d[at] = v
		return d
	}
	for name, test := range map[string]struct {
		datagram []byte
		want     Drop
	}{
		"empty":             {nil, DropDatagram},
		"too long":          {make([]byte, vr2gather.MaxDatagram+1), DropDatagram},
		"type":              {changed(0, 77), DropDatagram},
		"cut off":           {good[:100], DropPacket},
		"beyond its frame":  {changed(4+12, 1), DropPacket},
		"tile":              {changed(4+20, 2), DropTrack},
		"quality":           {changed(4+24, 1), DropTrack},
		"length of a frame": {changed(4+4+4+3, 0x7f), DropSize},
		"header of a frame": {changed(4+28+4, 0xff), DropHeader},
	} {
		tally := &Tally{}
		i := NewInlet(home, Layout{Tiles: 2, Qualities: 1}, true, tally)
		if a := i.Receive(home, test.datagram, start); a.Frame != nil || a.Chosen {
			t.Errorf("%s: it is read as %+v", name, a)
		}
		if tally.Count(test.want) != 1 {
			t.Errorf("%s: %v, expected one of %v", name, tally.Counts(), test.want)
		}
		_, known := i.Handshake.Peer()
		if readable := test.want != DropDatagram && test.want != DropPacket; known != readable {
			t.Errorf("%s: the connector is known: %v", name, known)
		}
		if a := i.Receive(home, good, start); a.Frame == nil && test.want != DropHeader {
			t.Errorf("%s: a frame after it is not taken: %v", name, tally.Counts())
		}
	}
	tally := &Tally{}
	i := NewInlet(home, Layout{Tiles: 2, Qualities: 1}, false, tally)
	i.Receive(home, good, start)
	i.Receive(other, good, start)
	expectDropped(t, tally, map[Drop]int64{DropUnwanted: 1, DropSource: 1})
}

// FuzzInlet sends arbitrary data, in two datagrams, to an inlet with an incomplete frame.
func FuzzInlet(f *testing.F) {
	frame := vr2gather.Packet{Kind: volumetric.KindVideo, Frame: 1, Tile: 1, Quality: 1}
	list := datagrams(f, frame, someFrame(3000, 1))
	f.Add(list[1], list[2])
	f.Add(list[1], datagrams(f, vr2gather.Packet{Kind: volumetric.KindAudio}, someFrame(100, 1))[0])
	f.Add(make([]byte, vr2gather.DatagramSize), []byte{3, 0, 0, 0, '0', ',', '1'})
	f.Add([]byte{1, 0, 0, 0}, list[0][:40])
	f.Fuzz(func(t *testing.T, one, two []byte) {
		tally := &Tally{}
		i := NewInlet(home, Layout{Tiles: 2, Qualities: 2}, true, tally)
		i.Receive(home, list[0], start)
		for step, datagram := range [][]byte{one, two, list[1], list[2]} {
			a := i.Receive(home, datagram, start.Add(time.Duration(step)*time.Millisecond))
			if a.Frame == nil {
				continue
			}
			if len(a.Frame.Data) < vr2gather.FrameHeaderSize || len(a.Frame.Data) > maxFrame || a.Frame.Track >= 4 {
				t.Errorf("frame %+v", a.Frame)
			}
		}
		if i.video.memory > maxMemory || i.audio.memory > maxMemory {
			t.Errorf("%d and %d bytes are held", i.video.memory, i.audio.memory)
		}
		i.Expire(start.Add(time.Minute))
		if i.video.memory+i.audio.memory != 0 {
			t.Errorf("%d bytes are held for ever", i.video.memory+i.audio.memory)
		}
	})
}
