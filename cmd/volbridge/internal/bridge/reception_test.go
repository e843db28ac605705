package bridge

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// payloads returns the RTP payloads of a frame.
func payloads(t *testing.T, frame vr2gather.Packet, data []byte) [][]byte {
	t.Helper()
	var list [][]byte
	for p := range vr2gather.Cut(frame, data) {
		payload, err := p.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, payload)
	}
	return list
}

// TestReceptionRenumbers continues a stream in qualities that are numbered separately, as forwarded by servers
// that do not renumber.
func TestReceptionRenumbers(t *testing.T) {
	tally := &Tally{}
	r := NewReception(tally)
	for i, step := range []struct {
		number, quality uint32
		sent            bool
	}{
		{100, 0, true}, {101, 0, true}, {100, 0, false}, {98, 1, true}, {99, 1, true}, {99, 1, false}, {103, 0, true},
		{40, 2, true}, {5000, 2, true}, {4900, 2, true},
	} {
		data := someFrame(3000, uint64(i))
		frame := vr2gather.Packet{Kind: volumetric.KindVideo, Client: 7, Tile: 3, Frame: step.number,
			Quality: step.quality}
		var got *Received
		for _, payload := range payloads(t, frame, data) {
			if whole := r.Push(volumetric.KindVideo, payload, start); whole != nil {
				got = whole
			}
		}
		if (got != nil) != step.sent {
			t.Fatalf("step %d: frame %d of quality %d is passed on: %v", i, step.number, step.quality, got != nil)
		}
		if got != nil && (got.Client != 7 || got.Tile != 3 || got.Quality != volumetric.Quality(step.quality) ||
			!bytes.Equal(got.Data, data) || !got.Arrival.Equal(start)) {
			t.Errorf("step %d: frame is %+v", i, got)
		}
	}
	if next := r.streams[outletStream{volumetric.KindVideo, 7, 3}].next; next != 8 {
		t.Errorf("%d frames were numbered, expected 8", next)
	}
	expectDropped(t, tally, map[Drop]int64{DropLate: 6})
}

// TestReceptionDropsIncompleteFrameAtASwitch switches the quality in the middle of a frame, to numbers that are late in
// the old numbering.
func TestReceptionDropsIncompleteFrameAtASwitch(t *testing.T) {
	tally := &Tally{}
	r := NewReception(tally)
	of := func(number, quality uint32) [][]byte {
		return payloads(t, vr2gather.Packet{Kind: volumetric.KindVideo, Frame: number, Quality: quality},
			someFrame(5000, uint64(number)))
	}
	whole := 0
	push := func(list [][]byte) {
		for _, payload := range list {
			if r.Push(volumetric.KindVideo, payload, start) != nil {
				whole++
			}
		}
	}
	push(of(10, 1))
	push(of(11, 1)[:2])
	push(of(5, 0)[3:])
	push(of(6, 0))
	push(of(7, 0))
	if whole != 3 {
		t.Errorf("%d frames are whole, expected 3", whole)
	}
	expectDropped(t, tally, map[Drop]int64{DropIncomplete: 1, DropLate: 2})
}

func TestReceptionIsBounded(t *testing.T) {
	tally := &Tally{}
	r := NewReception(tally)
	for client := range uint32(maxStreams + 10) {
		for _, payload := range payloads(t, vr2gather.Packet{Kind: volumetric.KindAudio, Client: client},
			someFrame(100, 1)) {
			if got := r.Push(volumetric.KindAudio, payload, start); (got != nil) != (client < maxStreams) {
				t.Fatalf("client %d is heard: %v", client, got != nil)
			}
		}
	}
	for _, payload := range [][]byte{nil, make([]byte, 27), bytes.Repeat([]byte{0xff}, 1172)} {
		r.Push(volumetric.KindVideo, payload, start)
	}
	outside := vr2gather.Packet{Kind: volumetric.KindVideo, Tile: volumetric.MaxTiles}
	r.Push(volumetric.KindVideo, payloads(t, outside, someFrame(100, 1))[0], start)
	expectDropped(t, tally, map[Drop]int64{DropReceived: 14})
}

func FuzzReception(f *testing.F) {
	for _, payload := range payloads(&testing.T{}, vr2gather.Packet{Kind: volumetric.KindVideo, Client: 1, Frame: 2},
		someFrame(3000, 1)) {
		f.Add(payload, true)
	}
	f.Add(bytes.Repeat([]byte{0xff}, 60), false)
	f.Fuzz(func(t *testing.T, payload []byte, video bool) {
		kind := volumetric.KindAudio
		if video {
			kind = volumetric.KindVideo
		}
		r := NewReception(&Tally{})
		for range 2 {
			if got := r.Push(kind, payload, start); got != nil && len(got.Data) > len(payload) {
				t.Errorf("%d bytes of %d", len(got.Data), len(payload))
			}
		}
	})
}

func TestAddress(t *testing.T) {
	tiles := map[uint32]int{1: 2, 2: 2, 3: 9, 0: 2}
	for _, test := range []struct {
		text, want string
		ignored    int
	}{
		{"", "", 0},
		{"0,1,2", "0,1,2;1,1,2;2,1,2;", 0},
		{"0,1,2\x00\x00", "0,1,2;1,1,2;2,1,2;", 0},
		{"3,1;0,-1", "3,1;0,-1;", 0},
		{"ada,1;2,x,1", "2,,1;", 2},
	} {
		if got, ignored := ExpandChoices(test.text, tiles); got != test.want || ignored != test.ignored {
			t.Errorf("%q becomes %q with %d ignored, expected %q with %d", test.text, got, ignored, test.want,
				test.ignored)
		}
	}
}

func TestDecline(t *testing.T) {
	if got := ChoicesOff(map[uint32]int{7: 1, 3: 2}); got != "3,-1,-1;7,-1;" {
		t.Errorf("%q", got)
	}
}

// TestInstantsSince checks that a restarted bridge continues above the numbers of the previous bridge.
func TestInstantsSince(t *testing.T) {
	first := NewInstantsSince(start, 1)
	var before []uint32
	for i := range 60 {
		now := start.Add(time.Duration(i) * time.Second / 60)
		number, _ := first.Next(0, uint64(now.UnixMilli()), now)
		before = append(before, number)
	}
	later := start.Add(time.Second)
	if number, _ := NewInstantsSince(later, 1).Next(0, uint64(later.UnixMilli()), later); !slices.IsSorted(before) ||
		number <= before[59] {
		t.Errorf("numbers %d to %d are followed by %d", before[0], before[59], number)
	}
}

// TestPaceOfALink compares the rate that a pace admits with the requested rate.
func TestPaceOfALink(t *testing.T) {
	const rate = 20_000_000
	p := NewPace(rate)
	sent := 0
	for now := start; now.Before(start.Add(10 * time.Second)); now = now.Add(time.Millisecond) {
		n, _ := p.Take(now, 1000)
		sent += n
	}
	if got := float64(sent) * wireSize * 8 / 10; got < 0.95*rate || got > 1.05*rate {
		t.Errorf("%.1f Mbit/s, expected 20", got/1e6)
	}
	if (NewPace(0) != Pace{}) {
		t.Error("no rate is no pace of this host's sockets")
	}
}
