package bridge

import (
	"encoding/binary"
	"math"
	"net/netip"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// sceneDatagram returns a datagram of a type, numbers and optional further values, padded as connectors pad.
func sceneDatagram(kind uint32, numbers []float32, more ...any) []byte {
	datagram := binary.LittleEndian.AppendUint32(nil, kind)
	for _, n := range numbers {
		datagram = binary.LittleEndian.AppendUint32(datagram, math.Float32bits(n))
	}
	for _, m := range more {
		switch m := m.(type) {
		case int:
			datagram = binary.LittleEndian.AppendUint32(datagram, uint32(m))
		case float64:
			datagram = binary.LittleEndian.AppendUint32(datagram, math.Float32bits(float32(m)))
		}
	}
	return append(datagram, make([]byte, max(0, vr2gather.DatagramSize-len(datagram)))...)
}

var (
	someView = []float32{1, 1.5, -2, 0, 0, 0, 1, 60, 1.5}
	somePose = []float32{1, 0, -2, 0, 1, 0, 0, 2}
)

func TestInletReadsTheScene(t *testing.T) {
	tally := &Tally{}
	i := NewInlet(home, Layout{Tiles: 2, Qualities: 1}, false, tally)
	a := i.Receive(home, sceneDatagram(datagramView, someView), start)
	want := signal.Viewpoint{Position: signal.Vector{1, 1.5, -2}, Orientation: signal.Rotation{0, 0, 0, 1}, FOV: 60,
		Aspect: 1.5}
	if a.View == nil || *a.View != want {
		t.Fatalf("%+v, expected %+v", a.View, want)
	}
	a = i.Receive(home, sceneDatagram(datagramScene, somePose, 1, 1, -1.0, -2.0, -3.0, 1.0, 2.0, 3.0), start)
	if a.Pose == nil || a.Pose.Position != (signal.Vector{1, 0, -2}) ||
		a.Pose.Orientation != (signal.Rotation{0, 1, 0, 0}) || a.Pose.Scale != 2 || a.Pose.Boxes != nil {
		t.Fatalf("%+v, expected no boxes, since one is not known", a.Pose)
	}
	a = i.Receive(home, sceneDatagram(datagramScene, somePose, 0, 1, 0.0, 0.0, 0.0, 0.5, 0.5, 0.5), start)
	boxes := []volumetric.BoundingBox{{Max: [3]float32{0.5, 0.5, 0.5}},
		{Min: [3]float32{-1, -2, -3}, Max: [3]float32{1, 2, 3}}}
	if a.Pose == nil || !slices.Equal(a.Pose.Boxes, boxes) {
		t.Fatalf("%+v, expected the boxes of both tiles", a.Pose)
	}
	if a = i.Receive(home, sceneDatagram(datagramScene, somePose, 0, 0), start); a.Pose == nil ||
		!slices.Equal(a.Pose.Boxes, boxes) {
		t.Errorf("%+v, expected the boxes of before", a.Pose)
	}
	expectDropped(t, tally, nil)
}

func TestInletDropsMalformedScenes(t *testing.T) {
	tally := &Tally{}
	i := NewInlet(home, Layout{Tiles: 2, Qualities: 1}, false, tally)
	changed := func(numbers []float32, at int, to float32) []float32 {
		numbers = slices.Clone(numbers)
		numbers[at] = to
		return numbers
	}
	nan := float32(math.NaN())
	wrong := [][]byte{
		sceneDatagram(datagramView, someView)[:20],
		sceneDatagram(datagramScene, somePose)[:20],
		sceneDatagram(datagramView, changed(someView, 0, nan)),
		sceneDatagram(datagramView, changed(someView, 6, 0)),
		sceneDatagram(datagramView, changed(someView, 7, -1)),
		sceneDatagram(datagramScene, changed(somePose, 7, nan), 0, 0),
		sceneDatagram(datagramScene, somePose, 1, 2),
		sceneDatagram(datagramScene, somePose, -1, 2),
		sceneDatagram(datagramScene, somePose, 0, 1<<30),
		sceneDatagram(datagramScene, somePose, 0, 1, 1.0, 0.0, 0.0, 0.5, 0.5, 0.5),
	}
	for n, datagram := range wrong {
		if a := i.Receive(home, datagram, start); a.View != nil || a.Pose != nil {
			t.Errorf("datagram %d is read as %+v", n, a)
		}
	}
	if _, known := i.Handshake.Peer(); known {
		t.Error("garbage says where the connector is")
	}
	i.Receive(home, sceneDatagram(datagramView, someView), start)
	stranger := netip.AddrPortFrom(home.Addr(), home.Port()+1)
	if a := i.Receive(stranger, sceneDatagram(datagramScene, somePose, 0, 1, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0),
		start); a.Pose != nil || i.scene.known[0] {
		t.Errorf("a stranger is listened to: %+v", a)
	}
	expectDropped(t, tally, map[Drop]int64{DropPacket: int64(len(wrong)), DropSource: 1})
}

func FuzzScene(f *testing.F) {
	f.Add(sceneDatagram(datagramView, someView))
	f.Add(sceneDatagram(datagramScene, somePose, 0, 2, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0))
	f.Add(sceneDatagram(datagramScene, somePose, 0, 53)[:30])
	f.Fuzz(func(t *testing.T, datagram []byte) {
		i := NewInlet(home, Layout{Tiles: 3, Qualities: 1}, false, &Tally{})
		if a := i.Receive(home, datagram, start); a.Pose != nil && a.Pose.Boxes != nil && len(a.Pose.Boxes) != 3 {
			t.Errorf("%d boxes of 3 tiles", len(a.Pose.Boxes))
		}
	})
}
