package ladder

import (
	"errors"
	"slices"
	"testing"
)

func TestParseRasters(t *testing.T) {
	got, err := ParseRasters(DefaultRasters)
	want := []Raster{{"low", 2, 0.003, 75}, {"mid", 1, 0.0015, 75}, {"high", 0, 0.00065, 80}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("default: %+v, %v, want %+v", got, err, want)
	}
	got, err = ParseRasters("a=1/1, b=1/2:2mm")
	if want = []Raster{{"a", 0, 0.00065, 80}, {"b", 1, 0.002, 75}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("without all fields: %+v, %v, want %+v", got, err, want)
	}
	for _, text := range []string{"", "low", "a=1/3", "a=25%:9", "a=5Mbit", "a=1/2:1.5", "a=1/2:0mm", "a=1/2:nanmm",
		"a=1/2:2000mm", "a=1/2:1mm:0", "a=1/2:1mm:101", "a=1/2:1mm:80:1", "a=1/1,a=1/2", "auto=1/1"} {
		if _, err := ParseRasters(text); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v, want an error around ErrSyntax", text, err)
		}
	}
}
