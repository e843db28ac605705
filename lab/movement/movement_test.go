package movement

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestReadWrite(t *testing.T) {
	want := Circle(1.5, 8, 0.25, 2*time.Second, 100*time.Millisecond)
	var file bytes.Buffer
	if err := Write(&file, want); err != nil {
		t.Fatal(err)
	}
	got, err := Read(&file)
	if err != nil || len(got) != len(want) {
		t.Fatalf("got %d stands, %v, want %d", len(got), err, len(want))
	}
	for i := range want {
		if got[i].At != want[i].At || math.Abs(got[i].X-want[i].X) > 1e-5 ||
			math.Abs(math.Remainder(got[i].Yaw-want[i].Yaw, 2*math.Pi)) > 1e-5 {
			t.Errorf("stand %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no header":    "0,1,2,3,4\n",
		"no stands":    Header + "\n",
		"few fields":   Header + "\n0,1,2,3\n",
		"not a number": Header + "\n0,1,2,NaN,4\n",
		"infinite":     Header + "\n0,1,2,+Inf,4\n",
		"before":       Header + "\n1,0,0,0,0\n0.5,0,0,0,0\n",
		"below zero":   Header + "\n-1,0,0,0,0\n",
		"long line":    Header + "\n" + strings.Repeat("1", 2*maxLine) + "\n",
	} {
		if _, err := Read(strings.NewReader(text)); !errors.Is(err, ErrPath) {
			t.Errorf("%s: got %v, want ErrPath", name, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(Header + "\n0,0,0,0,0\n1.5,1,2,3,-720\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		path, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, s := range []Stand{path.At(0), path.At(time.Hour)} {
			if math.IsNaN(s.X + s.Y + s.Z + s.Yaw) {
				t.Errorf("got %+v", s)
			}
		}
	})
}

func TestAt(t *testing.T) {
	degrees := math.Pi / 180
	path := Path{{0, 0, 0, 0, 170 * degrees}, {time.Second, 2, 0, 4, -170 * degrees}}
	middle := path.At(500 * time.Millisecond)
	if middle.X != 1 || middle.Z != 2 || math.Abs(math.Remainder(middle.Yaw-math.Pi, 2*math.Pi)) > 1e-9 {
		t.Errorf("got %+v, want halfway, across the turn of 180 degrees", middle)
	}
	if path.At(-time.Second) != path[0] || path.At(time.Minute) != path[1] {
		t.Error("expected the first stand before the beginning, the last after the end")
	}
}

// square returns four tiles around the middle: front, right, back, left.
func square() []volumetric.Tile {
	box := func(x, z float32) volumetric.Tile {
		return volumetric.Tile{Box: volumetric.BoundingBox{Min: [3]float32{x - 0.1, 0, z - 0.1},
			Max: [3]float32{x + 0.1, 2, z + 0.1}}}
	}
	return []volumetric.Tile{box(0, 1), box(1, 0), box(0, -1), box(-1, 0)}
}

func TestClosest(t *testing.T) {
	quarter := math.Pi / 2
	for _, test := range []struct {
		name           string
		viewer, object Stand
		want           int
	}{
		{"in front", Stand{Z: 3}, Stand{}, 0},
		{"to the right", Stand{X: 3}, Stand{}, 1},
		{"behind", Stand{Z: -3}, Stand{}, 2},
		{"to the left", Stand{X: -3}, Stand{}, 3},
		{"the object has moved", Stand{}, Stand{Z: -3}, 0},
		// The object is turned to the left: its front is towards +x.
		{"the object has turned to the viewer", Stand{X: 3}, Stand{Yaw: quarter}, 0},
		{"the object has turned away", Stand{Z: 3}, Stand{Yaw: math.Pi}, 2},
	} {
		if got := Closest(test.viewer, test.object, square()); got != test.want {
			t.Errorf("%s: got tile %d, want %d", test.name, got, test.want)
		}
	}
}

// TestDecisions makes a viewer walk once around a standing object. Each tile is the closest once, and the first tile
// again at the end.
func TestDecisions(t *testing.T) {
	viewer := Circle(3, 8, 0, 8*time.Second, 50*time.Millisecond)
	var got []int
	for _, d := range Decisions(viewer, Path{{}}, square(), 2, 8*time.Second, 100*time.Millisecond) {
		high := -1
		for tile, q := range d.Qualities {
			if q == 1 {
				if high >= 0 {
					t.Errorf("at %v tiles %d and %d are both high", d.At, high, tile)
				}
				high = tile
			}
		}
		got = append(got, high)
	}
	if want := []int{0, 1, 2, 3, 0}; len(got) != len(want) || got[0] != 0 || got[1] != 1 || got[2] != 2 ||
		got[3] != 3 || got[4] != 0 {
		t.Errorf("got the tiles %v, want %v", got, want)
	}
	// Two people who circle each other always see each other's front.
	one, other := Circle(1, 8, 0, 8*time.Second, 50*time.Millisecond),
		Circle(1, 8, 0.5, 8*time.Second, 50*time.Millisecond)
	if list := Decisions(one, other, square(), 2, 8*time.Second, 100*time.Millisecond); len(list) != 1 ||
		list[0].Qualities[0] != 1 {
		t.Errorf("got %v, want the front all the time", list)
	}
}
