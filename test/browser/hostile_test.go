package browser

import (
	"encoding/base64"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/viewer"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/test/claim"
)

// Limits of a page's cost for one hostile frame.
const (
	mostMiB = 64
	mostMS  = 200
)

// meshes are the only codec that pages do not decode.
const meshes = "drcm"

// decodersURL builds the page that has only the decoders and serves it as the server serves its pages.
func decodersURL(t *testing.T) string {
	t.Helper()
	node, _ := tools(t)
	folder := t.TempDir()
	build := exec.Command(node, filepath.Join("node_modules", "vite", "bin", "vite.js"), "build", "--logLevel", "warn",
		"--config", filepath.Join("test", "browser", "decoders", "vite.config.ts"), "--outDir", folder, "--emptyOutDir")
	build.Dir = filepath.Join(root, "clients", "web")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the page of decoders: %v\n%s", err, out)
	}
	s := httptest.NewServer(viewer.New(os.DirFS(folder), nil, false))
	t.Cleanup(s.Close)
	return s.URL
}

// outcome is the result of a frame in a page.
type outcome struct {
	Points        int
	Kind, Message string
	Milliseconds  float64
}

// refused reports whether a decoder rejected the frame as invalid. Other errors are those of the browser, such as for
// an array that is too long.
func (o *outcome) refused() bool { return o.Kind == "Error" }

// decodeFrame lets the page decode a frame after collecting garbage, and returns the cost in the renderers.
func (v *visit) decodeFrame(frame codectest.Frame, r renderers) (outcome, rendererCost) {
	v.t.Helper()
	text, err := json.Marshal(map[string]string{
		"codec": frame.Codec, "data": base64.StdEncoding.EncodeToString(frame.Data),
	})
	if err != nil {
		v.t.Fatal(err)
	}
	decoded := false
	defer func() {
		if !decoded {
			v.t.Logf("the frame was %s, %s", frame.Codec, frame.Name)
		}
	}()
	v.say(string(text))
	v.expect("held", nil)
	before := r.look(v.t)
	v.goOn()
	var o outcome
	v.expect("decoded", &o)
	decoded = true
	return o, r.since(before)
}

// decodeValid lets the page decode the valid frames. They verify that the page decodes, and that costs are measured.
// Afterwards all resources that decoders load or create once are present.
func (v *visit) decodeValid(r renderers) {
	v.t.Helper()
	var most rendererCost
	var points int
	for _, frame := range codectest.Valid() {
		if frame.Codec == meshes {
			continue
		}
		o, cost := v.decodeFrame(frame, r)
		if o.Points != frame.Points {
			v.t.Fatalf("%s, %s: %d points, want %d: %s", frame.Codec, frame.Name, o.Points, frame.Points, o.Message)
		}
		points = max(points, o.Points)
		most.peak, most.cpu = max(most.peak, cost.peak), max(most.cpu, cost.cpu)
	}
	// Three coordinates of four bytes and three colours of one.
	if least := int64(15 * points); most.peak < least || most.cpu <= 0 {
		v.t.Fatalf("a frame of %d points took %d bytes and %v, want at least %d bytes", points, most.peak,
			most.cpu, least)
	}
}

// TestHostileFrames has a page decode the hostile frames of all codecs, which the tests of Go's decoders also read. The
// decoders are the viewer's, in workers; their cost is that of the renderer as counted by the system. Thus the peak
// memory of scripts, of WebAssembly and of the browser's decoders counts, and the time of all threads.
func TestHostileFrames(t *testing.T) {
	tools(t)
	v := begin(t, "hostile.mjs", decodersURL(t))
	v.expect("loaded", nil)
	r := renderersOf(v.pid)
	v.decodeValid(r)
	first := r.look(t)
	var decoded, absent, accepted int64
	var most rendererCost
	var slowest float64
	for _, frame := range codectest.Hostile() {
		if frame.Codec == meshes {
			absent++
			continue
		}
		o, cost := v.decodeFrame(frame, r)
		if decoded++; !o.refused() {
			accepted++
			t.Errorf("%s, %s: %d points, %s %s, want an error", frame.Codec, frame.Name, o.Points, o.Kind, o.Message)
		}
		most.peak, most.cpu = max(most.peak, cost.peak), max(most.cpu, cost.cpu)
		slowest = max(slowest, o.Milliseconds)
	}
	kept := r.since(first).kept
	v.say("")
	v.expect("done", nil)
	for _, l := range []claim.Line{
		claim.Stated("Chromium: hostile frames decoded", float64(decoded), ""),
		claim.Stated("Chromium: hostile frames of codecs that pages do not decode", float64(absent), ""),
		claim.Exactly("Chromium: hostile frames without an error", accepted, "", 0),
		claim.AtMost("Chromium: memory for one frame", float64(most.peak)/(1<<20), "MiB", mostMiB),
		claim.AtMost("Chromium: memory that all frames leave", float64(kept)/(1<<20), "MiB", mostMiB),
		claim.AtMost("Chromium: processor time for one frame", float64(most.cpu)/float64(time.Millisecond),
			"ms", mostMS),
		claim.Stated("Chromium: time until the error for one frame", slowest, "ms"),
	} {
		told(t, l)
		if l.Missed() {
			t.Error(l)
		}
	}
}
