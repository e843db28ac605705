package sight

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const header = "FrameNumber,HMDPX,HMDPY,HMDPZ,HMDRX,HMDRY,HMDRZ,Participant,Dataset,ViewFrame\n"

// turned rotates a vector by a unit quaternion.
func turned(q [4]float64, v [3]float64) [3]float64 {
	p := product(product(q, [4]float64{v[0], v[1], v[2], 0}), [4]float64{-q[0], -q[1], -q[2], q[3]})
	return [3]float64{p[0], p[1], p[2]}
}

func near(a, b [3]float64) bool {
	for i := range a {
		if math.Abs(a[i]-b[i]) > 1e-6 {
			return false
		}
	}
	return true
}

// TestUnitysRotations compares with Unity: rotating about y by 90 degrees looks right, about x looks down, about z
// tilts the head to the left. Ahead is +z in Unity and -z here.
func TestUnitysRotations(t *testing.T) {
	for _, test := range []struct {
		name        string
		x, y, z     float64
		look, above [3]float64
	}{
		{"straight ahead", 0, 0, 0, [3]float64{0, 0, -1}, [3]float64{0, 1, 0}},
		{"right", 0, 90, 0, [3]float64{1, 0, 0}, [3]float64{0, 1, 0}},
		{"back", 0, 180, 0, [3]float64{0, 0, 1}, [3]float64{0, 1, 0}},
		{"down", 90, 0, 0, [3]float64{0, -1, 0}, [3]float64{0, 0, -1}},
		{"tilted", 0, 0, 90, [3]float64{0, 0, -1}, [3]float64{-1, 0, 0}},
		{"right and down", 90, 90, 0, [3]float64{0, -1, 0}, [3]float64{1, 0, 0}},
	} {
		q := orientation(test.x, test.y, test.z)
		if look, above := turned(q, [3]float64{0, 0, -1}), turned(q, [3]float64{0, 1, 0}); !near(look, test.look) ||
			!near(above, test.above) {
			t.Errorf("%s: looks along %v with %v above, want %v and %v", test.name, look, above, test.look, test.above)
		}
	}
}

func TestTracesAreOfOnePersonAndRepeat(t *testing.T) {
	text := header + "1,0.5,1.6,-2,0,0,0,P01,loot,1\n1,9,9,9,0,0,0,P02,loot,1\n" +
		"2,0.6,1.6,-2,0,0,0,P01,loot,2\n2,8,9,9,0,0,0,P02,loot,2\n3,0.7,1.6,-2,0,90,0,P01,loot,3\n"
	trace, err := Read(strings.NewReader(text), "")
	if err != nil || len(trace.viewpoints) != 3 {
		t.Fatalf("got %+v, %v; want 3 viewpoints", trace, err)
	}
	for i, want := range []float64{0.5, 0.6, 0.7, 0.5, 0.6} {
		v := trace.At(time.Duration(i)*time.Second/Rate + time.Millisecond)
		if !near(v.Position, [3]float64{want, 1.6, 2}) || v.FOV != fov || v.Aspect != aspect {
			t.Errorf("after %d steps the eye is at %v, want x = %g", i, v.Position, want)
		}
	}
	if other, err := Read(strings.NewReader(text), "P02"); err != nil || other.At(0).Position[0] != 9 {
		t.Errorf("got %v, want what P02 saw", err)
	}
}

func TestTracesThatCannotBeRead(t *testing.T) {
	for _, test := range []struct{ name, text, participant, want string }{
		{"nothing", "", "", "EOF"},
		{"no rotations", "HMDPX,HMDPY,HMDPZ\n1,2,3\n", "", "no column HMDRX"},
		{"nobody", header, "", "no viewpoints"},
		{"somebody else", header + "1,0,0,0,0,0,0,P01,loot,1\n", "P07", `no viewpoints of "P07"`},
		{"no number", header + "1,0,up,0,0,0,0,P01,loot,1\n", "", `line 2: HMDPY is "up"`},
		{"not a number", header + "1,0,0,0,0,0,NaN,P01,loot,1\n", "", `HMDRZ is "NaN"`},
		{"a short line", header + "1,0,0\n", "", "line 2"},
	} {
		if _, err := Read(strings.NewReader(test.text), test.participant); !errors.Is(err, ErrTrace) ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error with %q", test.name, err, test.want)
		}
	}
	if _, err := Open(t.TempDir()+"/none.csv", ""); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want one around %v", err, os.ErrNotExist)
	}
}

// TestRecordedViewpoints reads the recordings of 40 people who watched a person at the origin, if present.
func TestRecordedViewpoints(t *testing.T) {
	data := os.Getenv("VOLSFU_TESTDATA")
	if data == "" {
		t.Skip("test data: not set; set VOLSFU_TESTDATA")
	}
	seen, all := 0, 0
	for person := range 40 {
		trace, err := Open(filepath.Join(data, "viewports", "loot.csv"), fmt.Sprintf("P%02d", person+1))
		if err != nil {
			t.Fatal(err)
		}
		if len(trace.viewpoints) != 10*Rate {
			t.Errorf("person %d has %d viewpoints, want those of 10 s", person+1, len(trace.viewpoints))
		}
		for _, v := range trace.viewpoints {
			look := turned(v.Orientation, [3]float64{0, 0, -1})
			chest := [3]float64{-v.Position[0], 1 - v.Position[1], -v.Position[2]}
			away := math.Sqrt(chest[0]*chest[0] + chest[1]*chest[1] + chest[2]*chest[2])
			all++
			if look[0]*chest[0]+look[1]*chest[1]+look[2]*chest[2] > away*math.Sqrt2/2 {
				seen++
			}
		}
	}
	if seen < all*4/5 {
		t.Errorf("%d of %d viewpoints have the person within 45 degrees of their middle, want four fifths", seen, all)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(header+"1,0,0,0,0,0,0,P01,loot,1\n", "")
	f.Add(header+"1,0,0,0,1e308,1e308,0,P01,loot,1\n", "P01")
	f.Add("HMDRZ,HMDRY,HMDRX,HMDPZ,HMDPY,HMDPX\n1,2,3,4,5,6\n", "x")
	f.Fuzz(func(t *testing.T, text, participant string) {
		trace, err := Read(strings.NewReader(text), participant)
		if err != nil {
			return
		}
		for _, at := range []time.Duration{0, time.Second, time.Duration(len(trace.viewpoints)) * time.Second / Rate,
			100 * time.Hour} {
			q := trace.At(at).Orientation
			if square := q[0]*q[0] + q[1]*q[1] + q[2]*q[2] + q[3]*q[3]; !(math.Abs(square-1) < 1e-6) {
				t.Errorf("%v is no rotation", q)
			}
		}
	})
}
