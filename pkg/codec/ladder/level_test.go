package ladder

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	tests := []struct {
		text string
		want []Level
	}{
		{"low,mid,high", []Level{presets["low"], presets["mid"], presets["high"]}},
		{"high", []Level{presets["high"]}},
		{"a=10000,b=40000:12", []Level{
			{Name: "a", Points: 10000, Bits: 11, Speed: 10},
			{Name: "b", Points: 40000, Bits: 12, Speed: 10},
		}},
		{" far=v8mm:9:0 , near=v2.5mm ", []Level{
			{Name: "far", Voxel: 0.008, Bits: 9, Speed: 0},
			{Name: "near", Voxel: 0.0025, Bits: 11, Speed: 10},
		}},
		{"low=1Mbit,mid=2.5Mbit/s:10,high=20Mbit:11:10", []Level{
			{Name: "low", Rate: 1e6, Bits: -1, Speed: -1},
			{Name: "mid", Rate: 2.5e6, Bits: 10, Speed: -1},
			{Name: "high", Rate: 20e6, Bits: 11, Speed: 10},
		}},
		{"low=12.5%:8:7,high", []Level{{Name: "low", Share: 0.125, Bits: 8, Speed: 7}, presets["high"]}},
	}
	for _, test := range tests {
		got, err := ParseLevels(test.text)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%q: expected %v, got %v, %v", test.text, test.want, got, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "expected low, mid, high"},
		{"low,,high", `got ""`},
		{"tiny", `got "tiny"`},
		{"low,low", `"low" is there twice`},
		{"a=", "expected points"},
		{"a=0", "expected points"},
		{"a=-5", "expected points"},
		{"a=12x", "expected points"},
		{"a=0%", "share above 0"},
		{"a=101%", "share above 0"},
		{"a=NaN%", "share above 0"},
		{"a=v8", "as in v8mm"},
		{"a=v0mm", "as in v8mm"},
		{"a=vNaNmm", "as in v8mm"},
		{"a=0Mbit", "a bitrate as in 5Mbit"},
		{"a=-1bit", "a bitrate as in 5Mbit"},
		{"a=5Mbit:31", "expected 1 to 30"},
		{"a=1000:0", `bits of "a" is "0", expected 1 to 30`},
		{"a=1000:31", "expected 1 to 30"},
		{"a=1000:11:11", `speed of "a" is "11", expected 0 to 10`},
		{"a=1000:11:5:6", "4 fields"},
		{"2=1000", "a letter among them"},
		{"auto=1000", "neither auto nor off"},
		{"a b=1000", "expected letters"},
		{strings.Repeat("a", 40) + "=5", "at most 32"},
		{strings.Repeat("low,", 100), "expected at most 64"},
	}
	for _, test := range tests {
		got, err := ParseLevels(test.text)
		if !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: expected an error with %q, got %v, %v", test.text, test.want, got, err)
		}
	}
}

func TestPortion(t *testing.T) {
	tests := []struct {
		level  Level
		points int
		want   float64
	}{
		{Level{Points: 10000}, 40000, 0.25},
		{Level{Points: 10000}, 8000, 1},
		{Level{Share: 0.5}, 8000, 0.5},
		{Level{Voxel: 0.01}, 8000, 1},
		{Level{Points: 10}, 0, 1},
	}
	for _, test := range tests {
		if got := test.level.Portion(test.points); got != test.want {
			t.Errorf("%v of %d points: expected %g, got %g", test.level, test.points, test.want, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"low,mid,high", "a=10000:11:7,b=v8mm", "x=25%:9", "a=v0.30001mm:30:0", "=,", "a=1e3%",
		"a=5Mbit,b=7.5kbit/s:9:0",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		levels, err := ParseLevels(text)
		if err != nil {
			return
		}
		var written []string
		for _, l := range levels {
			written = append(written, l.String())
			if l.Rate > 0 {
				l = l.At(100, max(1, l.Bits), max(0, l.Speed))
			}
			if p := l.Portion(40000); !(p > 0 && p <= 1) {
				t.Errorf("%q: portion of %v is %g", text, l, p)
			}
		}
		again, err := ParseLevels(strings.Join(written, ","))
		if err != nil || len(again) != len(levels) {
			t.Fatalf("%q was written as %q, which reads %v, %v", text, written, again, err)
		}
		for i := range again {
			if math.Abs(float64(again[i].Voxel-levels[i].Voxel)) > 1e-5*float64(levels[i].Voxel) {
				t.Errorf("%v became %v", levels[i], again[i])
			}
			if again[i].Voxel = levels[i].Voxel; math.Abs(again[i].Share-levels[i].Share) < 1e-12 {
				again[i].Share = levels[i].Share
			}
		}
		if !reflect.DeepEqual(again, levels) {
			t.Errorf("%v became %v", levels, again)
		}
	})
}
