package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/direct/rendezvous"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/likeness"
	"github.com/volsfu/volsfu/pkg/capture"
)

// comparison is one of a run's log.
func comparison(log string) *comparing {
	return &comparing{log: log, source: "synthetic", capture: capture.Options{FPS: 30, Points: 3000}, codec: "raw", bits: 11, every: 3, width: 128, height: 72}
}

// TestCompare: what was received of a figure can be made again from the log, and looks like it.
func TestCompare(t *testing.T) {
	p := &producing{transport: rendezvous.TransportUDP, mode: rendezvous.ModeAdaptive, rate: 4_000_000}
	run := p.meetConsumer(t, &consuming{})
	dir := t.TempDir()
	log := filepath.Join(dir, "frames.jsonl")
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	for i := range run.received {
		if err := encoder.Encode(&run.received[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(log, text.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	c := comparison(log)
	c.films = filepath.Join(dir, "films")
	var out bytes.Buffer
	if err := c.run(t.Context(), &out, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	var report likenessReport
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Frames) == 0 {
		t.Fatal("no frame was compared")
	}
	for _, f := range report.Frames {
		if f.Number%3 != 0 || f.SSIM < 0.3 || f.PSNR < 10 {
			t.Errorf("got %+v", f)
		}
	}
	for _, name := range []string{"captured.y4m", "shown.y4m"} {
		info, err := os.Stat(filepath.Join(c.films, name))
		if want := int64(len(report.Frames)) * (128*72*3/2 + 6); err != nil || info.Size() < want || info.Size() > want+100 {
			t.Errorf("%s: %v, %v, want %d bytes and a line", name, info, err, want)
		}
	}
	// Another seed is another person: the frames made again are not those that were received.
	other := comparison(log)
	other.capture.Seed = 1
	if err := other.run(t.Context(), &out, slog.New(slog.DiscardHandler)); !errors.Is(err, likeness.ErrOther) {
		t.Errorf("with another source: %v", err)
	}
}

func TestCompareFlags(t *testing.T) {
	wrong := map[string]func(*comparing){
		"either --log": func(c *comparing) { c.log = "" }, "--frames and --shown": func(c *comparing) { c.frames = "x" }, "--every": func(c *comparing) { c.every = 0 },
		"--from": func(c *comparing) { c.from, c.until = time.Second, time.Second }, "--width": func(c *comparing) { c.width = 15 }, "--log": func(c *comparing) { c.log = "missing" },
		"--render-from": func(c *comparing) { c.view = "here" }, "--viewpoint": func(c *comparing) { c.viewpoint = "missing" }, "--codec": func(c *comparing) { c.codec = "none" },
	}
	for want, change := range wrong {
		c := comparison("frames.jsonl")
		change(c)
		if err := c.run(t.Context(), &bytes.Buffer{}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}
