package direct

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/lab/direct/rendezvous"
	"github.com/volsfu/volsfu/lab/imagediff"
)

// compare runs vollab compare on the log of a run, with additional flags.
func compare(t *testing.T, log string, more ...string) (imagediff.Report, error) {
	t.Helper()
	cmd := imagediff.Command()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	line := "--source synthetic --fps 30 --points 3000 --codec raw --bits 11 --every 3 --width 128 --height 72"
	cmd.SetArgs(append(append(strings.Fields(line), "--log", log), more...))
	var report imagediff.Report
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		return report, err
	}
	return report, json.Unmarshal(out.Bytes(), &report)
}

// TestCompare: received frames are encoded again from the log, and their pictures resemble the captured ones.
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
	films := filepath.Join(dir, "films")
	report, err := compare(t, log, "--films", films)
	if err != nil {
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
		info, err := os.Stat(filepath.Join(films, name))
		if want := int64(len(report.Frames)) * (128*72*3/2 + 6); err != nil || info.Size() < want ||
			info.Size() > want+100 {
			t.Errorf("%s: %v, %v, want %d bytes and a line", name, info, err, want)
		}
	}
	// With another seed the figure differs, so the encoded frames differ from the received frames.
	if _, err := compare(t, log, "--seed", "1"); !errors.Is(err, imagediff.ErrOther) {
		t.Errorf("with another source: %v", err)
	}
}
