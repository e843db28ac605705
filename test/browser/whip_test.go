package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/internal/server"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/wait"
)

const (
	// encodedWidth and encodedHeight are the size of the picture that ffmpeg sends, in pixels.
	encodedWidth, encodedHeight = 640, 360
	// encodedRate is the number of frames that ffmpeg sends per second, and of frames between key frames.
	encodedRate = 30
)

// encoder returns an ffmpeg with WHIP. It skips the test if there is none.
func encoder(t *testing.T) string {
	t.Helper()
	path := filepath.Join(root, ".tools", "bin", "ffmpeg")
	if _, err := os.Stat(path); err != nil {
		if path, err = exec.LookPath("ffmpeg"); err != nil {
			t.Skip("ffmpeg is missing: make deps installs it")
		}
	}
	muxers, err := exec.Command(path, "-hide_banner", "-muxers").Output()
	if err != nil || !strings.Contains(string(muxers), " whip ") {
		t.Skip("this ffmpeg has no WHIP: versions from 8 have it")
	}
	return path
}

// encode starts ffmpeg, which sends a test picture and a tone by WHIP.
func encode(t *testing.T, path, endpoint string) {
	t.Helper()
	command := exec.Command(path, "-hide_banner", "-loglevel", "error",
		"-re", "-f", "lavfi", "-i", fmt.Sprintf("testsrc2=size=%dx%d:rate=%d", encodedWidth, encodedHeight, encodedRate),
		"-re", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000",
		"-c:v", "libx264", "-profile:v", "baseline", "-preset", "ultrafast", "-tune", "zerolatency",
		"-g", fmt.Sprint(encodedRate), "-b:v", "800k", "-pix_fmt", "yuv420p",
		"-c:a", "libopus", "-ac", "2", "-b:a", "64k", "-f", "whip", endpoint)
	command.Stderr = &logged{t}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// ffmpeg ends the session by DELETE.
		_ = command.Process.Signal(os.Interrupt)
		_ = command.Wait()
	})
}

// played are the statistics of a page that plays.
type played struct {
	At, First                                                           float64
	Patched, Width, Height, Shown                                       int
	FramesDecoded, FramesReceived, FramesDropped, FreezeCount, PLICount int64
	PacketsLost, SoundPackets                                           int64
	TotalFreezesDuration                                                float64
}

// TestWHIPInChromium sends a picture and a tone from ffmpeg by WHIP, and plays them in Chromium by WHEP. The page is of
// another server, whose origin is allowed. With -measure it plays for as long as a measurement.
func TestWHIPInChromium(t *testing.T) {
	tools(t)
	ffmpeg := encoder(t)
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<!DOCTYPE html><body></body>")
	}))
	defer pages.Close()
	s := start(t, func(o *server.Options) { o.Config.Signalling.AllowedOrigins = []string{pages.URL} })
	encode(t, ffmpeg, pageURL(s)+"/v1/whip/demo?identity=camera")
	wait.Until(t, "the encoder is connected", func() bool {
		response, err := http.Get("http://" + s.AdminAddress() + "/admin/v1/rooms/demo")
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		text := make([]byte, 4096)
		n, _ := response.Body.Read(text)
		return strings.Contains(string(text[:n]), `"connected":true`)
	})
	frames := 3 * encodedRate
	if *measure {
		frames = *seconds * encodedRate
	}
	v := begin(t, "whep.mjs", pageURL(s), pages.URL, pageURL(s)+"/v1/whep/demo/camera", strconv.Itoa(frames))
	var before, after played
	v.expect("playing", &before)
	v.expect("played", &after)
	var ended struct{ Status int }
	v.expect("ended", &ended)
	v.expect("done", nil)
	if before.Patched != http.StatusNoContent || ended.Status != http.StatusOK {
		t.Errorf("PATCH has status %d and DELETE %d, expected 204 and 200", before.Patched, ended.Status)
	}
	took := (after.At - before.At) / 1000
	told(t, claim.Exactly("WHEP in Chromium: width of the picture", int64(after.Width), "px", encodedWidth))
	told(t, claim.Exactly("WHEP in Chromium: height of the picture", int64(after.Height), "px", encodedHeight))
	told(t, claim.AtMost("WHEP in Chromium: from the offer to the first frame on the screen", before.First/1000, "s", 3))
	told(t, claim.AtLeast(fmt.Sprintf("WHEP in Chromium: decoded of %d frames per second, over %.0f s", encodedRate, took),
		float64(after.FramesDecoded-before.FramesDecoded)/took, "fps", 0.95*encodedRate))
	told(t, claim.AtMost("WHEP in Chromium: time frozen", 1000*(after.TotalFreezesDuration-before.TotalFreezesDuration),
		"ms", 0))
	told(t, claim.Information("WHEP in Chromium: freezes", float64(after.FreezeCount-before.FreezeCount), ""))
	told(t, claim.Information("WHEP in Chromium: packets of sound per second",
		float64(after.SoundPackets-before.SoundPackets)/took, "/s"))
	if after.Width != encodedWidth || after.Height != encodedHeight {
		t.Errorf("the picture has %d × %d pixels, expected %d × %d", after.Width, after.Height, encodedWidth, encodedHeight)
	}
	if after.SoundPackets == 0 {
		t.Error("no packet of sound was received")
	}
}
