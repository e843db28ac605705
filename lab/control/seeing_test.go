package control

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/test/race"
)

// viewersWith writes a file of recorded viewers with the given rows and returns its name.
func viewersWith(t *testing.T, rows ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "viewers.csv")
	text := "FrameNumber,HMDPX,HMDPY,HMDPZ,HMDRX,HMDRY,HMDRZ,Participant,Dataset,ViewFrame\n" + strings.Join(rows,
		"\n") + "\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// looking returns the image of -z under an orientation.
func looking(q [4]float64) [3]float64 {
	x, y, z, w := q[0], q[1], q[2], q[3]
	return [3]float64{-2 * (x*z + w*y), -2 * (y*z - w*x), -(1 - 2*(x*x+y*y))}
}

func TestReadViewers(t *testing.T) {
	file := viewersWith(t,
		"1,0.5,1.6,-2,0,0,0,P01,loot,1",
		"2,0.5,1.6,-2,30,0,0,P01,loot,2",
		"1,0,1.6,2,0,90,0,P02,loot,1",
		"2,0,1.6,2,0,180,45,P02,loot,2",
	)
	traces, err := readViewers(file, 1, 1)
	if err != nil || len(traces) != 2 || len(traces[0]) != 2 || len(traces[1]) != 2 {
		t.Fatalf("got %v, %v, want two traces of two rows", traces, err)
	}
	half := math.Sqrt(3) / 2
	for i, want := range []struct{ position, direction [3]float64 }{
		{[3]float64{0.5, 1.6, 2}, [3]float64{0, 0, -1}},
		{[3]float64{0.5, 1.6, 2}, [3]float64{0, -0.5, -half}},
		{[3]float64{0, 1.6, -2}, [3]float64{1, 0, 0}},
		{[3]float64{0, 1.6, -2}, [3]float64{0, 0, 1}},
	} {
		v := traces[i/2][i%2]
		got := looking(v.Orientation)
		for axis := range got {
			if math.Abs(got[axis]-want.direction[axis]) > 1e-9 || v.Position[axis] != want.position[axis] {
				t.Errorf("row %d is at %v looking along %v, expected %v and %v", i+1, v.Position, got, want.position,
					want.direction)
				break
			}
		}
	}
	for _, row := range []string{"1,2,3", "1,x,1,1,1,1,1,P01,loot,1"} {
		if _, err := readViewers(viewersWith(t, row), 1, 1); !errors.Is(err, ErrViewers) {
			t.Errorf("%q: got %v, want ErrViewers", row, err)
		}
	}
	if _, err := readViewers("/nowhere.csv", 1, 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that there is no file", err)
	}
}

// TestSeeing: a viewer who looks at the upper half of a person from a metre away sees more quality than with uniform
// allocation.
func TestSeeing(t *testing.T) {
	race.SkipSequential(t)
	var rows []string
	for i := range 60 {
		rows = append(rows, fmt.Sprintf("%d,0.%02d,1.6,-1,0,0,0,P01,loot,%d", i+1, i%30, i+1))
	}
	lines, err := seeing(context.Background(), &bench{viewers: viewersWith(t, rows...)})
	if err != nil || len(lines) != 5 {
		t.Fatalf("got %v, %v, want five lines", lines, err)
	}
	// The check judges the allocation time, not this test.
	p99, median, largest := lines[0], lines[1], lines[2]
	if median.Figure <= 0 || p99.Figure < median.Figure || largest.Figure < p99.Figure || p99.Target == "" ||
		median.Target != "" || largest.Target != "" {
		t.Errorf("got %v, %v and %v, want the 99th percentile judged, beside median and maximum", p99, median, largest)
	}
	if !lines[3].Met || lines[4].Figure != 1 {
		t.Errorf("got %v", lines)
	}
	lines, err = seeing(context.Background(), &bench{viewers: "/nowhere.csv"})
	if err != nil || len(lines) != 4 || lines[3].Skipped == "" {
		t.Errorf("got %v, %v, want that viewers are skipped", lines, err)
	}
}
