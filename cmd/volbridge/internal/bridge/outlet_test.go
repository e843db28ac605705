package bridge

import (
	"bytes"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// read reassembles the frame in datagrams, as strictly as a connector.
func read(t *testing.T, list []byte) (first vr2gather.Packet, frame []byte) {
	t.Helper()
	for ; len(list) > 0; list = list[vr2gather.DatagramSize:] {
		d, err := vr2gather.ParseDatagram(list[:vr2gather.DatagramSize])
		if err != nil {
			t.Fatal(err)
		}
		p, err := d.Packet()
		if err != nil {
			t.Fatal(err)
		}
		if frame == nil {
			first = p
		}
		if int(p.Offset) != len(frame) || p.Frame != first.Frame || p.Length != first.Length || p.Tile != first.Tile ||
			p.Quality != first.Quality {
			t.Fatalf("packet %+v does not follow %+v", p, first)
		}
		frame = append(frame, p.Data...)
	}
	return first, frame
}

func TestOutletNumbersForTheConnector(t *testing.T) {
	tally := &Tally{}
	o := NewOutlet(tally)
	first := uint32(start.UnixMilli() % firstNumbers)
	want := first
	for _, step := range []struct {
		number uint32
		sent   bool
	}{{100, true}, {101, true}, {105, true}, {103, false}, {105, false}, {106, true}, {0, true}, {1, true}} {
		data := someFrame(5000, uint64(step.number))
		list := o.AppendDatagrams(nil, &Received{Kind: volumetric.KindVideo, Client: 3, Tile: 2, Quality: 1,
			Number: step.number,
			Data:   data}, start)
		if !step.sent {
			if len(list) != 0 {
				t.Errorf("frame %d is sent", step.number)
			}
			continue
		}
		p, frame := read(t, list)
		if p.Client != 3 || p.Tile != 2 || p.Quality != 1 || p.Frame != want || !bytes.Equal(frame, data) {
			t.Errorf("frame %d is sent as number %d of client %d, tile %d, quality %d; expected number %d", step.number,
				p.Frame, p.Client, p.Tile, p.Quality, want)
		}
		want++
	}
	expectDropped(t, tally, map[Drop]int64{DropOrder: 2})
	// A restarted publication may have a number that would be late for the earlier one.
	o.RestartClient(3)
	again := &Received{Kind: volumetric.KindVideo, Client: 3, Tile: 2, Data: someFrame(100, 1)}
	if p, frame := read(t, o.AppendDatagrams(nil, again, start)); p.Frame != want || len(frame) != 100 {
		t.Errorf("the first frame of a new publication has number %d, expected %d", p.Frame, want)
	}
	// A client that left and returns is ahead of the connector's last frame, and so is a client of another outlet.
	o.Retain(func(client uint32) bool { return client == 3 })
	kept := len(o.streams)
	o.Retain(NewDirectory(0).Present)
	if kept != 1 || len(o.streams) != 0 {
		t.Errorf("%d tiles of one who is here are kept, and %d of one who left", kept, len(o.streams))
	}
	for _, next := range []*Outlet{o, NewOutlet(tally)} {
		if p, _ := read(t, next.AppendDatagrams(nil, again, start.Add(time.Second))); p.Frame != first+1000 {
			t.Errorf("a second later numbers begin at %d, expected %d", p.Frame, first+1000)
		}
	}
	if c := o.Counts(); c.Frames != 8 || c.FrameBytes != 30_200 || c.Datagrams != 32 || c.AudioFrames != 0 {
		t.Errorf("counts are %+v", c)
	}
}

func TestVoices(t *testing.T) {
	tally := &Tally{}
	v, o := NewVoices(tally), NewOutlet(tally)
	data := someFrame(3000, 1)
	sent := 0
	for number := range uint32(5) {
		for p := range vr2gather.Cut(vr2gather.Packet{Kind: volumetric.KindAudio, Client: 8, Frame: number}, data) {
			payload, err := p.Append(nil)
			if err != nil {
				t.Fatal(err)
			}
			if number == 2 && p.First() {
				continue // lost
			}
			received := v.Push(4, payload, start)
			if received == nil {
				continue
			}
			first, frame := read(t, o.AppendDatagrams(nil, received, start))
			if first.Client != 4 || first.Kind != volumetric.KindAudio ||
				int(first.Frame) != int(start.UnixMilli()%firstNumbers)+sent || !bytes.Equal(frame, data) {
				t.Errorf("frame %d is sent as %d of client %d", number, first.Frame, first.Client)
			}
			sent++
		}
	}
	if v.Push(4, []byte("no packet"), start) != nil || sent != 4 {
		t.Errorf("%d of 5 frames, one of which lost a packet", sent)
	}
	expectDropped(t, tally, map[Drop]int64{DropIncomplete: 1, DropAudio: 1})
	v.Retain(NewDirectory(0).Present)
	if len(v.streams) != 0 {
		t.Error("who left is not forgotten")
	}
}

func TestPace(t *testing.T) {
	var p Pace
	if n, _ := p.Take(start, 1000); n != burst {
		t.Fatalf("%d at once, expected %d", n, burst)
	}
	n, wait := p.Take(start, 1000)
	if n != 0 || wait != leastBurst*datagramTime {
		t.Fatalf("%d more after %v, expected none, and a quarter of a burst later", n, wait)
	}
	if n, _ = p.Take(start.Add(wait), 1000); n != leastBurst {
		t.Errorf("%d after the wait, expected %d", n, leastBurst)
	}
	// In the long run one datagram is sent per datagramTime, for any number of requested datagrams.
	now, sent := start, 0
	p = Pace{}
	for now.Before(start.Add(time.Second)) {
		n, wait := p.Take(now, 5000)
		sent += n
		now = now.Add(wait)
	}
	if most := int(time.Second/datagramTime) + burst; sent > most || sent < most*9/10 {
		t.Errorf("%d datagrams in a second, expected %d", sent, most)
	}
	if n, wait = p.Take(now.Add(time.Hour), 3); n != 3 || wait != 0 {
		t.Errorf("after a pause %d of 3 are taken, to wait %v", n, wait)
	}
}
