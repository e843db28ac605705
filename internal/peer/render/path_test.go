package render

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestPath(t *testing.T) {
	p, err := ReadPath(strings.NewReader("# a turn\n0 0,1,2\n\n2 4,1,2,350,10\n4 4,1,2,10\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		at   time.Duration
		view string
	}{
		{0, "0,1,2"}, {time.Second, "2,1,2,-5,5"}, {2 * time.Second, "4,1,2,350,10"}, {3 * time.Second, "4,1,2,0,5"},
		{time.Minute, "4,1,2,10"},
	} {
		want, err := ParseView(test.view)
		if err != nil {
			t.Fatal(err)
		}
		got := p.At(test.at)
		dot := 0.0
		for i := range got.Orientation {
			dot += got.Orientation[i] * want.Orientation[i]
		}
		if got.Position != want.Position || math.Abs(dot) < 1-1e-9 {
			t.Errorf("at %v: %+v, expected %+v", test.at, got, want)
		}
	}
	for _, wrong := range []string{
		"", "x 0,0,0", "1", "1 0,0", "-1 0,0,0", "1 0,0,0\n1 0,0,0", "1 0,0,nan", "1e9 0,0,0",
	} {
		if _, err := ReadPath(strings.NewReader(wrong)); !errors.Is(err, ErrPath) {
			t.Errorf("%q: %v, expected %v", wrong, err, ErrPath)
		}
	}
}
