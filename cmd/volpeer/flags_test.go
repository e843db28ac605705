package main

import (
	"errors"
	"math"
	"testing"

	"github.com/volsfu/volsfu/internal/quality/rates"
	"github.com/volsfu/volsfu/pkg/client"
)

func TestBitrates(t *testing.T) {
	for text, want := range map[string]bitrate{
		"20Mbit": 20e6, "500kbit": 500e3, "1.5Gbit/s": 1.5e9, "9600bit": 9600, "2 Mbit": 2e6, "0.5kbit": 500,
		"20": 0, "Mbit": 0, "-1Mbit": 0, "0Mbit": 0, "NaNbit": 0, "1e9Gbit": 0, "20MB": 0, "": 0, "20mbit": 0,
	} {
		var b bitrate
		if err := b.Set(text); b != want || (want == 0) != errors.Is(err, rates.ErrSyntax) {
			t.Errorf("%q: got %d, %v; want %d", text, b, err, want)
		}
	}
	b := bitrate(20e6)
	if b.String() != "20 Mbit/s" || (*new(bitrate)) != 0 || new(bitrate).String() != "" {
		t.Errorf("20e6 bit/s are %q", b.String())
	}
	if err := b.Set(b.String()); err != nil || b != 20e6 {
		t.Errorf("a rate as it is printed is read as %d, %v", b, err)
	}
}

func TestPoses(t *testing.T) {
	half := math.Sqrt(0.5)
	for text, want := range map[string]client.Pose{
		"1,0,-2":        {Position: [3]float64{1, 0, -2}, Orientation: [4]float64{0, 0, 0, 1}},
		"0, 0.5, 3, 90": {Position: [3]float64{0, 0.5, 3}, Orientation: [4]float64{0, half, 0, half}},
	} {
		got, err := parsePose(text)
		if err != nil || got.Position != want.Position || math.Abs(got.Orientation[1]-want.Orientation[1]) > 1e-9 || math.Abs(got.Orientation[3]-want.Orientation[3]) > 1e-9 {
			t.Errorf("%q: got %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1,2", "1,2,3,4,5", "1,two,3", "1,NaN,3", "1,2,1e9", "Inf,0,0"} {
		if _, err := parsePose(text); !errors.Is(err, errPose) {
			t.Errorf("%q: got %v, want an error around %v", text, err, errPose)
		}
	}
}
