package codecs

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/draco"
)

func TestFind(t *testing.T) {
	for name, want := range map[string]string{
		"raw": "raw", "zstd": "zstd", "cwi0": "cwi0", "parts": "parts", "parts:zstd:3": "parts:zstd:3",
		"parts:raw:64": "parts:raw:64",
		"labels":       "labels", "labels:zstd": "labels:zstd",
	} {
		c, err := Find(name)
		if err != nil || c.Name() != want {
			t.Errorf("%q: got %v, %v, want %q", name, c, err, want)
		}
	}
	for name, says := range map[string]string{
		"":             "expected one of",
		"mp3":          `"mp3", expected one of`,
		"parts:":       "expected one of",
		"parts:mp3:2":  `"mp3"`,
		"parts:raw:0":  `"0" parts, expected 1 to 64`,
		"parts:raw:65": `"65" parts`,
		"parts:raw:x":  `"x" parts`,
		"parts:raw:2:": `"2:" parts`,
		"parts:parts":  "parts of parts",
		"draco-mesh":   "draco",
		"labels:mp3":   `"mp3"`,
		"labels:cwi0":  "does not tell the order",
		"parts:labels": "parts of labels",
	} {
		if c, err := Find(name); !errors.Is(err, codec.ErrUnknown) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, %v, want ErrUnknown that says %q", name, c, err, says)
		}
	}
	one, err := Find("parts:zstd")
	if err != nil || !strings.HasPrefix(one.Name(), "parts:zstd:") {
		t.Errorf("got %v, %v, want zstd in one part per processor", one, err)
	}
}

// TestCodecsOfDraco checks that without Draco, the error explains how to build a program with Draco.
func TestCodecsOfDraco(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for _, name := range []string{"draco", "parts:draco:2"} {
		c, err := Choose(name, log)
		if draco.Available() && (err != nil || c.Name() != name) || !draco.Available() &&
			!errors.Is(err, draco.ErrUnavailable) {
			t.Errorf("%q: got %v, %v, with Draco built in: %v", name, c, err, draco.Available())
		}
	}
	c, err := Choose("", log)
	if want := map[bool]string{false: "zstd", true: "draco"}[draco.Available()]; err != nil || c.Name() != want {
		t.Errorf("without a name: got %v, %v, with Draco built in: %v", c, err, draco.Available())
	}
	unknown := errors.Join(codec.ErrUnknown)
	if err := Explain(codec.FourCC{'d', 'r', 'c', 'm'}, unknown); !errors.Is(err, draco.ErrUnavailable) {
		t.Errorf("drcm: got %v, want how to build with Draco", err)
	}
}
