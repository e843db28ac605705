package peer

import (
	"errors"
	"testing"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestBitrates(t *testing.T) {
	for text, want := range map[string]Bitrate{
		"20Mbit": 20e6, "500kbit": 500e3, "1.5Gbit/s": 1.5e9, "9600bit": 9600, "2 Mbit": 2e6, "0.5kbit": 500,
		"20": 0, "Mbit": 0, "-1Mbit": 0, "0Mbit": 0, "NaNbit": 0, "1e9Gbit": 0, "20MB": 0, "": 0, "20mbit": 0,
	} {
		var b Bitrate
		if err := b.Set(text); b != want || (want == 0) != errors.Is(err, volumetric.ErrBitrate) {
			t.Errorf("%q: got %d, %v; want %d", text, b, err, want)
		}
	}
	var most Bitrate
	if err := most.Set("1000Gbit"); err != nil || volumetric.Bitrate(most) != signal.MaxBitrate {
		t.Errorf("the largest rate of messages is read as %d, %v", most, err)
	}
	if err := most.Set("1001Gbit"); !errors.Is(err, volumetric.ErrBitrate) {
		t.Errorf("a rate above that of messages: got %v", err)
	}
	b := Bitrate(20e6)
	if b.String() != "20 Mbit/s" || (*new(Bitrate)) != 0 || new(Bitrate).String() != "" {
		t.Errorf("20e6 bit/s are %q", b.String())
	}
	if err := b.Set(b.String()); err != nil || b != 20e6 {
		t.Errorf("a rate as it is printed is read as %d, %v", b, err)
	}
}
