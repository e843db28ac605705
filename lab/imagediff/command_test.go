package imagediff

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/capture"
)

// comparingLog returns the flags for a run's log.
func comparingLog(log string) *comparing {
	return &comparing{log: log, source: "synthetic", capture: capture.Options{FPS: 30, Points: 3000}, codec: "raw",
		bits: 11, every: 3, width: 128, height: 72}
}

func TestCompareFlags(t *testing.T) {
	wrong := map[string]func(*comparing){
		"either --log":         func(c *comparing) { c.log = "" },
		"--frames and --shown": func(c *comparing) { c.frames = "x" },
		"--every":              func(c *comparing) { c.every = 0 },
		"--from":               func(c *comparing) { c.from, c.until = time.Second, time.Second },
		"--width":              func(c *comparing) { c.width = 15 }, "--log": func(c *comparing) { c.log = "missing" },
		"--render-from": func(c *comparing) { c.view = "here" },
		"--viewpoint":   func(c *comparing) { c.viewpoint = "missing" },
		"--codec":       func(c *comparing) { c.codec = "none" },
	}
	for want, change := range wrong {
		c := comparingLog("frames.jsonl")
		change(c)
		if err := c.run(t.Context(), &bytes.Buffer{}, slog.New(slog.DiscardHandler)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}
