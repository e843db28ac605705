package browser

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec/dracojpeg"
	_ "github.com/volsfu/volsfu/pkg/codec/rgbd" // registers the codec
)

// TestDepthCamera has a page publish the video of a depth camera that sees a red board two metres away: viewers see it
// at its position and in its size.
func TestDepthCamera(t *testing.T) {
	tools(t)
	if !dracojpeg.Available() {
		t.Skip("built without cgo: frames of pages cannot be decoded")
	}
	file := filepath.Join(t.TempDir(), "board.y4m")
	if err := os.WriteFile(file, board(), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CHROMIUM_ARGUMENTS", strings.Join([]string{
		os.Getenv("CHROMIUM_ARGUMENTS"), "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
		"--use-file-for-fake-video-capture=" + file,
	}, " "))
	// The board has 160 × 120 of the 320 × 240 pixels; a frame of Draco has 2,000 of the points.
	t.Run("draco", func(t *testing.T) { depthCamera(t, "draco", 2000, 2000) })
	t.Run("rgbd", func(t *testing.T) { depthCamera(t, "rgbd", 158*118, 160*120) })
}

// depthCamera has a page publish the board with a codec. A frame has least to most points.
func depthCamera(t *testing.T, codec string, least, most int) {
	t.Helper()
	s := start(t, nil)
	v := begin(t, "camera.mjs", pageURL(s), codec)
	v.expect("live", nil)
	w := decode(t, s)
	w.wait(t, "pictures of the camera are decoded", 5)
	low, high := [3]float64{9, 9, 9}, [3]float64{-9, -9, -9}
	cloud := w.newest()
	for i, p := range cloud.Positions {
		for axis, v := range p {
			low[axis], high[axis] = min(low[axis], float64(v)), max(high[axis], float64(v))
		}
		if c := cloud.Colors[i]; c[0] < 180 || c[1] > 80 || c[2] > 80 {
			t.Fatalf("point %d has the colour %v, expected red", i, c)
		}
	}
	// Half of the 60° wide view at two metres, around the camera's height of 1.2 m, midway between the nearest and the
	// farthest depth. Two centimetres are the precision of 11 bits and 8 bits of brightness.
	wide := math.Tan(math.Pi/6) * 2 / 2
	for axis, want := range [3][2]float64{{-wide, wide}, {1.2 - wide*3/4, 1.2 + wide*3/4}, {0, 0}} {
		if math.Abs(low[axis]-want[0]) > 0.03 || math.Abs(high[axis]-want[1]) > 0.03 {
			t.Errorf("axis %d: points reach from %.3f to %.3f m, expected %.3f to %.3f", axis, low[axis], high[axis],
				want[0], want[1])
		}
	}
	if cloud.Len() < least || cloud.Len() > most {
		t.Errorf("%d points, expected %d to %d", cloud.Len(), least, most)
	}
	v.goOn()
	var stopped struct{ Camera string }
	v.expect("stopped", &stopped)
	if stopped.Camera != "ended" {
		t.Errorf("the camera is %q, expected to be given back", stopped.Camera)
	}
	v.expect("done", nil)
	w.check(t)
}

// board returns a second of video as a YUV4MPEG2 file, 320 × 240 pixels of depth to the left of as many of colour: a
// board of half the width and height, with nothing around it, and red everywhere.
func board() []byte {
	const width, height, frames = 640, 240, 10
	// Grey of half the brightness, and black, in the limited range of BT.601; red there.
	const near, nothing, red, redU, redV, neutral = 126, 16, 81, 90, 240, 128
	var frame bytes.Buffer
	frame.WriteString("FRAME\n")
	for y := range height {
		for x := range width {
			switch {
			case x >= width/2:
				frame.WriteByte(red)
			case x >= width/8 && x < 3*width/8 && y >= height/4 && y < 3*height/4:
				frame.WriteByte(near)
			default:
				frame.WriteByte(nothing)
			}
		}
	}
	for _, chroma := range []byte{redU, redV} {
		for range height / 2 {
			frame.Write(bytes.Repeat([]byte{neutral}, width/4))
			frame.Write(bytes.Repeat([]byte{chroma}, width/4))
		}
	}
	return append(fmt.Appendf(nil, "YUV4MPEG2 W%d H%d F10:1 Ip A1:1 C420jpeg\n", width, height),
		bytes.Repeat(frame.Bytes(), frames)...)
}
