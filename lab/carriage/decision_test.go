package carriage

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestDecisions(t *testing.T) {
	want := []Decision{
		{0, []volumetric.Quality{1, 0, 0}}, {1500 * time.Millisecond, []volumetric.Quality{0, 1, -1}},
		{1500 * time.Millisecond, []volumetric.Quality{0, 0, 1}},
	}
	var file bytes.Buffer
	if err := WriteDecisions(&file, want); err != nil {
		t.Fatal(err)
	}
	if text := file.String(); text != "t_s,q0,q1,q2\n0,1,0,0\n1.5,0,1,-1\n1.5,0,0,1\n" {
		t.Errorf("wrote %q", text)
	}
	got, err := ReadDecisions(&file)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for name, text := range map[string]string{
		"no qualities":    "1\n",
		"no time":         "soon,1\n",
		"before zero":     "-1,1\n",
		"never":           "NaN,1\n",
		"quality":         "1,64\n",
		"below off":       "1,-2\n",
		"backwards":       "2,1\n1,1\n",
		"number of tiles": "1,1\n2,1,1\n",
		"too many tiles":  "1" + strings.Repeat(",0", volumetric.MaxTiles+1),
		"long line":       strings.Repeat("1", maxDecisionLine+1),
	} {
		if _, err := ReadDecisions(strings.NewReader(text)); !errors.Is(err, ErrDecisions) {
			t.Errorf("%s: got %v, want ErrDecisions", name, err)
		}
	}
}

func FuzzReadDecisions(f *testing.F) {
	f.Add("t_s,q0,q1\n0,1,0\n2.25,-1,63\n")
	f.Add("1e9,0")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ReadDecisions(strings.NewReader(text))
		if err != nil {
			return
		}
		var file bytes.Buffer
		if err := WriteDecisions(&file, list); err != nil {
			t.Fatal(err)
		}
		if again, err := ReadDecisions(&file); err != nil || len(again) != len(list) {
			t.Errorf("%q was read as %d decisions, and their text as %d, %v", text, len(list), len(again),
				err)
		}
	})
}

func TestNumbers(t *testing.T) {
	for _, test := range []struct {
		name    string
		numbers []uint32
		count   int64
		missing int64
	}{
		{"none", nil, 0, 0},
		{"one", []uint32{9}, 1, 0},
		{"in a row", []uint32{9, 10, 11}, 3, 0},
		{"one missing", []uint32{9, 11}, 2, 1},
		{"late", []uint32{9, 11, 10}, 3, 0},
		{"twice", []uint32{9, 9, 10}, 2, 0},
		{"across zero", []uint32{1<<32 - 1, 1}, 2, 1},
		{"before the first", []uint32{9, 3}, 1, 0},
		{"of another time", []uint32{9, 9 + maxSpan}, 1, 0},
		{"many", []uint32{0, 64, 128}, 3, 126},
	} {
		var n numbers
		for _, number := range test.numbers {
			n.add(number)
		}
		if n.count != test.count || n.missing() != test.missing {
			t.Errorf("%s: got %d and %d missing, want %d and %d", test.name, n.count, n.missing(), test.count,
				test.missing)
		}
	}
	var n numbers
	n.add(1)
	n.expect(4)
	if n.missing() != 3 {
		t.Errorf("got %d missing, want the damaged one as well", n.missing())
	}
}

func TestPercentiles(t *testing.T) {
	var s sample
	for i := 100; i > 0; i-- {
		s.add(time.Duration(i) * time.Millisecond)
	}
	if p := s.percentiles(); p.Count != 100 || p.Mean != 50.5 || p.P50 != 50 || p.P95 != 95 || p.P99 != 99 ||
		p.Max != 100 || p.Deviation < 28.8 || p.Deviation > 28.9 {
		t.Errorf("got %+v", p)
	}
	if p := (sample{}).percentiles(); p != (Percentiles{}) {
		t.Errorf("got %+v without values", p)
	}
}
