package browser

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/lab"
	"github.com/volsfu/volsfu/internal/lab/suite"
	"github.com/volsfu/volsfu/internal/server"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

var (
	measure = flag.Bool("measure", false, "measure what the viewer claims, on a machine that does nothing else")
	seconds = flag.Int("seconds", 30, "how long two people are watched")
)

// measuring skips a test that measures, unless it is asked for.
func measuring(t *testing.T) {
	t.Helper()
	if !*measure {
		t.Skip("measured on demand: vollab check viewer")
	}
	tools(t)
}

// told logs a line for vollab check viewer to read.
func told(t *testing.T, l lab.Line) {
	t.Helper()
	t.Log(suite.Figure(l))
}

// seen is what a page has counted so far, and its figures of the last two seconds.
type seen struct {
	At                                     float64
	Decoded, Skipped, Failed, Missing      int64
	Bytes                                  int64
	FPS, BPS, Network, Wait, Decode, Shown float64
	Lines                                  int
}

// delivered is the share of frames that came whole to the script between two looks.
func delivered(before, after seen) float64 {
	whole := after.Decoded + after.Skipped - before.Decoded - before.Skipped
	return 100 * float64(whole) / float64(whole+after.Missing-before.Missing)
}

// TestMeasureWatching watches two people of 30,000 points at 30 frames per second: what comes whole, how late it is, and what becomes of the tab's memory.
func TestMeasureWatching(t *testing.T) {
	measuring(t)
	s := start(t, nil)
	for _, who := range []string{"ada", "grace"} {
		publish(t, s, who, "--points", "30000", "--fps", "30", "--tiles", "4")
	}
	v := begin(t, "measure.mjs", pageURL(s), "watch", strconv.Itoa(*seconds))
	var begun struct{ Heap float64 }
	v.expect("begun", &begun)
	before := residentOf("chromium")
	v.goOn()
	var watched struct {
		Before, After seen
		Heap          float64
	}
	v.patience = time.Duration(*seconds)*time.Second + patience
	v.expect("watched", &watched)
	after := residentOf("chromium")
	b, a := watched.Before, watched.After
	told(t, lab.AtLeast("frames that came whole", delivered(b, a), "%", 99))
	frames := float64(a.Decoded-b.Decoded) / (a.At - b.At) * 1000 / float64(max(a.Lines, 1))
	told(t, lab.Information("decoded per tile", frames, "fps"))
	told(t, lab.Information("capture → arrived, median", a.Network, "ms"))
	told(t, lab.Information("arrived → decoded, median", a.Wait+a.Decode, "ms"))
	told(t, lab.Information("decoded → shown, median", a.Shown, "ms"))
	told(t, lab.Exactly("frames that could not be decoded", a.Failed, "", 0))
	told(t, lab.AtMost(fmt.Sprintf("growth of the page's heap in %d s", *seconds), (watched.Heap-begun.Heap)/1e6, "MB", 10))
	told(t, lab.AtMost(fmt.Sprintf("growth of the browser's memory in %d s", *seconds), (after-before)/1e6, "MB", 60))
	v.expect("done", nil)
}

// TestMeasureCarrying sends prepared frames, more and more, to a page that does not decode them.
func TestMeasureCarrying(t *testing.T) {
	measuring(t)
	best := 0.0
	for _, mbps := range []float64{60, 110, 160} {
		s := start(t, nil)
		prepared(t, s, mbps)
		v := begin(t, "measure.mjs", pageURL(s), "carry", "10")
		var carried struct{ Before, After seen }
		v.expect("carried", &carried)
		v.expect("done", nil)
		b, a := carried.Before, carried.After
		got := float64(a.Bytes-b.Bytes) * 8 / 1000 / (a.At - b.At)
		told(t, lab.Information(fmt.Sprintf("of %g Mbit/s sent, received", mbps), got, "Mbit/s"))
		told(t, lab.Information(fmt.Sprintf("of %g Mbit/s sent, frames whole", mbps), delivered(b, a), "%"))
		best = max(best, got)
	}
	told(t, lab.AtLeast("received by one tab", best, "Mbit/s", 100))
}

// TestMeasureTurning looks at one of two people on a link that does not carry both, and then at the other.
func TestMeasureTurning(t *testing.T) {
	measuring(t)
	s := start(t, nil)
	for _, who := range []string{"ada", "grace"} {
		publish(t, s, who, "--points", "30000", "--fps", "30", "--tiles", "4")
	}
	v := begin(t, "measure.mjs", pageURL(s), "turn", "0", "30000000")
	var first, second struct{ Ada, Grace, Back float64 }
	v.expect("facing ada", &first)
	v.expect("facing grace", &second)
	v.expect("done", nil)
	told(t, lab.AtLeast("bits for the unseen one, less than when seen by", 100*(1-first.Grace/second.Grace), "%", 70))
	told(t, lab.AtMost("turned → the other one at full quality", second.Back, "ms", 300))
}

// TestMeasureLoading opens the lobby in a browser that has never been there, and enters a room.
func TestMeasureLoading(t *testing.T) {
	measuring(t)
	s := start(t, nil)
	publish(t, s, "ada", "--points", "30000", "--fps", "30")
	v := begin(t, "measure.mjs", pageURL(s), "load")
	var loaded struct{ Bytes, Milliseconds float64 }
	v.expect("loaded", &loaded)
	v.expect("done", nil)
	told(t, lab.AtMost("loaded, compressed", loaded.Bytes/1e6, "MB", 1.5))
	told(t, lab.AtMost("click → first point", loaded.Milliseconds/1000, "s", 3))
}

// prepared publishes frames of noise in four tiles at 30 per second.
func prepared(t *testing.T, s *server.Server, mbps float64) {
	t.Helper()
	const tiles, fps = 4, 30
	body := volumetric.Publication{
		Name: "noise", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, FrameRate: fps,
		Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		Qualities: []volumetric.QualityLevel{{Bitrate: volumetric.Bitrate(mbps * 1e6 / tiles)}},
	}
	for range tiles {
		body.Tiles = append(body.Tiles, volumetric.Tile{Box: volumetric.BoundingBox{Max: [3]float32{1, 1, 1}}})
	}
	session, err := client.Join(t.Context(), client.Config{URL: s.URL(), Room: "demo", Identity: "noise", Publications: []volumetric.Publication{body}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	data := make([]byte, int(mbps*1e6/8/fps/tiles))
	go func() {
		defer close(done)
		camera := time.NewTicker(time.Second / fps)
		defer camera.Stop()
		for number := uint32(0); ; {
			select {
			case <-ctx.Done():
				return
			case capture := <-camera.C:
				sent := false
				for tile := range tiles {
					f := client.OutgoingFrame{Number: number, Capture: capture, Codec: volumetric.FourCC{'n', 'o', 'n', 'e'}, Data: data}
					sent = session.Publisher("noise").WriteFrame(tile, 0, f) == nil || sent
				}
				if sent {
					number++
				}
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		_ = session.Close()
	})
}

// residentOf sums the resident memory of all processes of a program, in bytes. What they share is counted once for each.
func residentOf(program string) float64 {
	sum := 0.0
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, name := range names {
		comm, err := os.ReadFile(name)
		if err != nil || !strings.HasPrefix(string(comm), program) {
			continue
		}
		statm, err := os.ReadFile(filepath.Join(filepath.Dir(name), "statm"))
		if fields := strings.Fields(string(statm)); err == nil && len(fields) > 1 {
			pages, _ := strconv.ParseFloat(fields[1], 64)
			sum += pages * float64(os.Getpagesize())
		}
	}
	return sum
}
