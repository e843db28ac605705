package kinect

import (
	"bytes"
	"errors"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/depth"
)

func readFile(data []byte) (*Recording, error) {
	return read("kinect", "test.mkv", bytes.NewReader(data), int64(len(data)))
}

// TestWrittenRecordings reads recordings with all colour formats: each depth pixel has the colour
// of the corresponding point in the colour image.
func TestWrittenRecordings(t *testing.T) {
	for _, format := range []colorFormat{formatMJPG, formatNV12, formatYUY2, formatBGRA} {
		r, err := readFile(marshal(t, newFile(t, format, 2)))
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		if r.Len() != 2 || math.Abs(r.FrameRate()-30) > 1e-3 || !strings.Contains(r.Description(), "000123") {
			t.Errorf("%s: %d frames at %g, %s", format, r.Len(), r.FrameRate(), r.Description())
		}
		if at := r.Time(1); at != 5*time.Millisecond+34_333*time.Microsecond || !r.Synchronized() {
			t.Errorf("%s: frame 1 is at %v, synchronized %v", format, at, r.Synchronized())
		}
		if c := r.Camera(); c.Name != "kinect" || c.FX != 256 || c.FY != 256 || c.CX != 159.5 || c.CY != 165.5 ||
			c.Unit != 0.001 ||
			c.Distortion.Radius != 1.7 {
			t.Errorf("%s: camera is %+v", format, c)
		}
		var m depth.Image
		if err := r.LoadImage(1, &m); err != nil {
			t.Fatal(err)
		}
		checkShades(t, format, &m, 990)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// checkShades computes independently which colour pixel corresponds to each pixel of the wall: 50
// mm to the right at a focal length of 640 pixels.
func checkShades(t *testing.T, format colorFormat, m *depth.Image, millimetres uint16) {
	t.Helper()
	seen := 0
	for i := 0; i < len(m.Colors); i += 7 {
		got := m.Colors[i]
		x, y := (float64(i%testDepthWidth)-159.5)/256, (float64(i/testDepthWidth)-165.5)/256
		u := 639.5 + 640*(x-50/float64(millimetres))
		v := 359.5 + 640*y
		inside := u >= 0 && v >= 0 && u < testColorWidth-1 && v < testColorHeight-1
		if !inside {
			if m.Depth[i] != 0 {
				t.Fatalf("%s: pixel %d beyond the picture has depth %d", format, i, m.Depth[i])
			}
			continue
		}
		seen++
		luma, cb, cr := testShade(int(u+0.5), int(v+0.5))
		expected := video(luma, cb, cr)
		if format == formatMJPG || format == formatBGRA {
			r, g, b := color.YCbCrToRGB(luma, cb, cr)
			expected = [3]uint8{r, g, b}
		}
		for channel := range 3 {
			if off := math.Abs(
				float64(got[channel]) - float64(expected[channel]),
			); off > 6 ||
				m.Depth[i] != millimetres { // rounding in JPEG
				t.Fatalf(
					"%s: pixel %d has colour %v and depth %d, expected %v and %d",
					format,
					i,
					got,
					m.Depth[i],
					expected,
					millimetres,
				)
			}
		}
	}
	if seen < 80_000/7 {
		t.Errorf("%s: %d pixels in the picture", format, seen)
	}
}

func TestPairing(t *testing.T) {
	file := newFile(t, formatMJPG, 5)
	clusters := file.Segment.Cluster
	clusters[1].BlockGroup = nil                      // a colour image was lost
	clusters[2].SimpleBlock = nil                     // a depth image was lost
	clusters[3].BlockGroup[0].Block.Timecode = 17_700 // more than half an interval late
	clusters[4].BlockGroup[0].Block.Timecode = 16_000
	r, err := readFile(marshal(t, file))
	if err != nil {
		t.Fatal(err)
	}
	var times []time.Duration
	for i := range r.Len() {
		times = append(times, r.frames[i].at)
	}
	if len(times) != 2 || times[0] != time.Millisecond || times[1] != (4*33_333+1000)*time.Microsecond {
		t.Errorf("frames at %v, expected the first and the last", times)
	}
}

func TestRecordingErrors(t *testing.T) {
	setTag := func(name, value string) func(*mkvFile) {
		return func(f *mkvFile) {
			f.Segment.Tags.Tag = append(f.Segment.Tags.Tag, mkvTag{[]mkvSimpleTag{{name, value}}})
		}
	}
	calibration := func(from, to string) func(*mkvFile) {
		return func(f *mkvFile) {
			attached := &f.Segment.Attachments.AttachedFile[1]
			attached.FileData = bytes.Replace(attached.FileData, []byte(from), []byte(to), 1)
		}
	}
	tests := []struct {
		change func(*mkvFile)
		err    error
		says   string
	}{
		{func(f *mkvFile) { f.Header.DocType = "other" }, ErrMatroska, `"other"`},
		{func(f *mkvFile) { f.Segment.Info.TimecodeScale = 2e9 }, ErrMatroska, "per tick"},
		{func(f *mkvFile) { f.Segment.Tracks.TrackEntry[1].Name = "DEEP" }, ErrRecording, "no track DEPTH"},
		{func(f *mkvFile) { f.Segment.Tracks.TrackEntry[0].Name = "" }, ErrRecording, "no track COLOR"},
		{func(f *mkvFile) { f.Segment.Tracks.TrackEntry[1].CodecID = "V_FFV1" }, ErrRecording, `"V_FFV1"`},
		{func(f *mkvFile) { f.Segment.Tracks.TrackEntry[1].CodecPrivate = nil }, ErrRecording, "track DEPTH"},
		{func(f *mkvFile) { f.Segment.Tracks.TrackEntry[0].CodecPrivate[16] = 'X' }, ErrRecording, `"XJPG"`},
		{func(f *mkvFile) { f.Segment.Tracks.TrackEntry[1].CodecPrivate[7] = 1 }, ErrRecording, "4096"},
		{func(f *mkvFile) { f.Segment.Tracks.TrackEntry[1].CodecPrivate[4]++ }, ErrCalibration, "any mode"},
		{func(f *mkvFile) { f.Segment.Attachments.AttachedFile = nil }, ErrRecording, "no calibration"},
		{setTag("K4A_CALIBRATION_FILE", "other.json"), ErrRecording, "no calibration"},
		{setTag("K4A_DEPTH_DELAY_NS", "soon"), ErrRecording, `"soon"`},
		{setTag("K4A_START_OFFSET_NS", "99999999999999999"), ErrRecording, "K4A_START_OFFSET_NS"},
		{calibration("{", "["), ErrCalibration, "invalid"},
		{calibration(locationColor, "elsewhere"), ErrCalibration, locationColor},
		{calibration(modelBrown, "pinhole"), ErrCalibration, `"pinhole"`},
		{calibration(`"Rotation":[1`, `"Rotation":[2`), ErrCalibration, "rotation"},
		{calibration(`"Rotation":[1,`, `"Rotation":[`), ErrCalibration, "8 numbers"},
		{func(f *mkvFile) { f.Segment.Cluster[0].SimpleBlock[0].Data[0] = []byte("short") }, ErrRecording, "5 bytes"},
		{func(f *mkvFile) { f.Segment.Cluster = nil }, ErrRecording, "0 images of depth"},
		{func(f *mkvFile) { f.Segment.Cluster[0].Timecode = 1 << 60 }, ErrMatroska, "ticks"},
	}
	for _, test := range tests {
		file := newFile(t, formatMJPG, 1)
		test.change(file)
		if _, err := readFile(
			marshal(t, file),
		); !errors.Is(err, test.err) ||
			!strings.Contains(err.Error(), test.says) {
			t.Errorf("got %v, expected an error around %q that says %q", err, test.err, test.says)
		}
	}
	for name, data := range map[string][]byte{"empty": nil, "text": []byte("hello"),
		"header": marshal(t, newFile(t, formatMJPG, 1))[:4]} {
		if _, err := readFile(data); !errors.Is(err, ErrMatroska) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open("kinect", filepath.Join(t.TempDir(), "none.mkv")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestColorErrors checks that a truncated colour image is an error of its frame.
func TestColorErrors(t *testing.T) {
	for format, data := range map[colorFormat][]byte{
		formatMJPG: []byte("no JPEG"), formatNV12: make([]byte, 10), formatYUY2: nil, formatBGRA: make([]byte,
			4*testColorWidth*testColorHeight+1),
	} {
		file := newFile(t, format, 1)
		file.Segment.Cluster[0].BlockGroup[0].Block.Data[0] = data
		r, err := readFile(marshal(t, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.LoadImage(
			0,
			new(depth.Image),
		); !errors.Is(err, ErrColor) ||
			!strings.Contains(err.Error(), "test.mkv, frame 0") {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// TestCutOff checks that a truncated recording contains the frames before the end.
func TestCutOff(t *testing.T) {
	data := marshal(t, newFile(t, formatMJPG, 3))
	whole, err := readFile(data)
	if err != nil {
		t.Fatal(err)
	}
	for size := len(data) - 1; size > 10_000; size -= 99_991 {
		r, err := readFile(data[:size])
		expected := 0
		for _, f := range whole.frames {
			if f.depth.from+int64(f.depth.size) <= int64(size) && f.color.from+int64(f.color.size) <= int64(size) {
				expected++
			}
		}
		switch {
		case expected == 0 && err == nil:
			t.Errorf("%d of %d bytes: no error", size, len(data))
		case expected > 0 && (err != nil || r.Len() != expected):
			t.Errorf("%d of %d bytes: expected %d frames, error %v", size, len(data), expected, err)
		}
	}
}

// realRecording opens the recording in the test data, or skips the test.
func realRecording(t testing.TB) *Recording {
	t.Helper()
	root := os.Getenv("VOLSFU_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data") // three folders below the module's root
	}
	path := filepath.Join(root, "azure-kinect", "recording.mkv")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("skipped: test data not found at %s; set VOLSFU_TESTDATA", path)
	}
	r, err := Open("mug", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// TestRealRecording reads the recording of a real camera: a mug in front of a wall with a window.
func TestRealRecording(t *testing.T) {
	r := realRecording(t)
	c := r.Camera()
	if r.Len() != 1 || r.FrameRate() != 5 || r.Synchronized() || !strings.Contains(r.Description(), "001514394512") ||
		c.Width != 640 ||
		c.Height != 576 {
		t.Errorf("%d frames at %g, %s, %+v", r.Len(), r.FrameRate(), r.Description(), c)
	}
	// These values follow from the calibration: 0.4927808940410614 · 1024, and 0.51296979188919067
	// · 1024 - 192 - 0.5.
	if math.Abs(c.FX-504.60763) > 1e-4 || math.Abs(c.CX-332.78107) > 1e-4 {
		t.Errorf("focal length %g, centre %g", c.FX, c.CX)
	}
	var m depth.Image
	if err := r.LoadImage(0, &m); err != nil {
		t.Fatal(err)
	}
	checkMug(t, &m)
}

// TestLoadsInParallel loads frames in several goroutines at once.
func TestLoadsInParallel(t *testing.T) {
	r, err := readFile(marshal(t, newFile(t, formatBGRA, 2)))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for worker := range 3 {
		group.Go(func() {
			var m depth.Image
			index := worker % 2
			if err := r.LoadImage(
				index,
				&m,
			); err != nil ||
				m.Depth[testDepthWidth*testDepthHeight/2] != uint16(1000-10*index) {
				t.Errorf("frame %d: %v", index, err)
			}
		})
	}
	group.Wait()
}

// checkMug checks pixels with known content.
func checkMug(t *testing.T, m *depth.Image) {
	t.Helper()
	at := func(x, y int) (uint16, [3]uint8) { return m.Depth[y*640+x], m.Colors[y*640+x] }
	mug, pink := at(260, 350)
	pane, blue := at(500, 200)
	wall, gray := at(350, 450)
	if !(mug > 200 && mug < 500 && pane > 1000 && wall > 1000) {
		t.Errorf("mug, pane and wall are %d, %d and %d mm off", mug, pane, wall)
	}
	if !(pink[0] > blue[0]/2 && pink[0] > pink[2] && blue[2] > blue[0] && blue[2] > 150 && gray[0] < 150) {
		t.Errorf("mug, pane and wall are %v, %v and %v", pink, blue, gray)
	}
	if depth, _ := at(120, 400); depth != 0 {
		t.Errorf("the mug's shadow on the wall, which the colour camera does not see, is %d mm off", depth)
	}
	points := 0
	for _, d := range m.Depth {
		if d != 0 {
			points++
		}
	}
	if points < 240_000 || points > 275_000 {
		t.Errorf("%d pixels with depth and colour", points)
	}
}

// FuzzRecording reads arbitrary bytes as a recording. The seed has no images, since almost all
// mutations would hit these.
func FuzzRecording(f *testing.F) {
	file := newFile(f, formatMJPG, 1)
	data := marshal(f, file)
	f.Add(data[:bytes.Index(data, testDepth(1000))])
	file.Segment.Cluster[0].SimpleBlock[0].Data[0] = []byte("tiny")
	file.Segment.Cluster[0].BlockGroup[0].Block.Data[0] = []byte("tiny")
	f.Add(marshal(f, file))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := readFile(data)
		if err != nil {
			if !errors.Is(err, ErrMatroska) && !errors.Is(err, ErrRecording) && !errors.Is(err, ErrCalibration) {
				t.Errorf("error without kind: %v", err)
			}
			return
		}
		var m depth.Image
		if err := r.LoadImage(0, &m); err != nil && !errors.Is(err, ErrColor) {
			t.Errorf("error without kind: %v", err)
		}
	})
}

// FuzzCalibration reads arbitrary calibrations for images of a real size.
func FuzzCalibration(f *testing.F) {
	f.Add(testCalibration(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parseCalibration(data, [2]int{320, 288}, [2]int{1280, 720})
		if err != nil {
			if !errors.Is(err, ErrCalibration) {
				t.Errorf("error without kind: %v", err)
			}
			return
		}
		if p.depth.Validate() != nil || p.color.Validate() != nil || p.toColor.Validate() != nil {
			t.Errorf("accepted %+v", p)
		}
	})
}

// BenchmarkLoadImage loads depth of 640 × 576 and a JPEG of 1280 × 720, registered.
func BenchmarkLoadImage(b *testing.B) {
	r := realRecording(b)
	var m depth.Image
	b.ReportAllocs()
	for b.Loop() {
		if err := r.LoadImage(0, &m); err != nil {
			b.Fatal(err)
		}
	}
}
