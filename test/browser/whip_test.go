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

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/server"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/wait"
)

const (
	// encodedWidth and encodedHeight are the size of the picture that the documented ffmpeg sends, in pixels.
	encodedWidth, encodedHeight = 640, 360
	// encodedRate is the number of frames that the documented ffmpeg sends per second.
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

// documented returns the arguments of ffmpeg in docs/whip.md, for the given address and token.
func documented(t *testing.T, address, token string) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "whip.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := strings.Cut(string(page), "\nffmpeg ")
	example, _, ended := strings.Cut(example, "\n```")
	if !found || !ended {
		t.Fatal("docs/whip.md has no command for ffmpeg")
	}
	example = strings.NewReplacer("\\\n", " ", `"$TOKEN"`, token, "https://sfu.example.org", address).Replace(example)
	return append([]string{"-hide_banner", "-loglevel", "error"}, strings.Fields(example)...)
}

// encode starts the documented ffmpeg, which sends a picture of encodedWidth × encodedHeight pixels, encodedRate frames
// per second and a tone by WHIP.
func encode(t *testing.T, path, address, token string) {
	t.Helper()
	command := exec.Command(path, documented(t, address, token)...)
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
	keys := auth.Config{Keys: []string{"k:" + strings.Repeat("s", 32)}}
	s := start(t, func(o *server.Options) {
		o.Config.Server.Dev, o.Config.Auth.Keys = false, keys.Keys
		o.Config.Signalling.AllowedOrigins = []string{pages.URL}
	})
	encode(t, ffmpeg, pageURL(s), mint(t, keys, auth.Claims{Room: "studio", Identity: "camera", Publish: true}))
	wait.Until(t, "the encoder is connected", func() bool {
		response, err := http.Get("http://" + s.AdminAddress() + "/admin/v1/rooms/studio")
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
	v := begin(t, "whep.mjs", pageURL(s), pages.URL, pageURL(s)+"/v1/whep/studio/camera", strconv.Itoa(frames),
		mint(t, keys, auth.Claims{Room: "studio", Subscribe: true}))
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
	told(t, claim.AtMost("WHEP in Chromium: from the offer to the first frame on the screen", before.First/1000, "s",
		3))
	told(t, claim.AtLeast(
		fmt.Sprintf("WHEP in Chromium: decoded of %d frames per second, over %.0f s", encodedRate, took),
		float64(after.FramesDecoded-before.FramesDecoded)/took, "fps", 0.95*encodedRate))
	told(t, claim.AtMost("WHEP in Chromium: time frozen", 1000*(after.TotalFreezesDuration-before.TotalFreezesDuration),
		"ms", 0))
	told(t, claim.Information("WHEP in Chromium: freezes", float64(after.FreezeCount-before.FreezeCount), ""))
	told(t, claim.Information("WHEP in Chromium: packets of sound per second",
		float64(after.SoundPackets-before.SoundPackets)/took, "/s"))
	if after.Width != encodedWidth || after.Height != encodedHeight {
		t.Errorf("the picture has %d × %d pixels, expected %d × %d", after.Width, after.Height, encodedWidth,
			encodedHeight)
	}
	if after.SoundPackets == 0 {
		t.Error("no packet of sound was received")
	}
}
