package kinect

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"image"
	"image/color"
	"image/jpeg"
	"sync"
	"testing"

	"github.com/at-wat/ebml-go"
)

// These are Matroska elements for a different library, named and nested as in the sensor SDK's
// "Recording file format".
type (
	mkvFile struct {
		Header  mkvHeader  `ebml:"EBML"`
		Segment mkvSegment `ebml:"Segment"`
	}
	mkvHeader struct {
		DocType string `ebml:"EBMLDocType"`
	}
	mkvSegment struct {
		Info struct {
			TimecodeScale uint64 `ebml:"TimecodeScale"`
		} `ebml:"Info"`
		Tracks struct {
			TrackEntry []mkvTrack `ebml:"TrackEntry"`
		} `ebml:"Tracks"`
		Attachments struct {
			AttachedFile []mkvAttached `ebml:"AttachedFile"`
		} `ebml:"Attachments"`
		Tags struct {
			Tag []mkvTag `ebml:"Tag"`
		} `ebml:"Tags"`
		Cluster []mkvCluster `ebml:"Cluster,size=unknown"`
	}
	mkvTrack struct {
		TrackNumber     uint64 `ebml:"TrackNumber"`
		Name            string `ebml:"Name"`
		CodecID         string `ebml:"CodecID"`
		CodecPrivate    []byte `ebml:"CodecPrivate"`
		DefaultDuration uint64 `ebml:"DefaultDuration"`
	}
	mkvAttached struct {
		FileName string `ebml:"FileName"`
		FileData []byte `ebml:"FileData"`
	}
	mkvTag struct {
		SimpleTag []mkvSimpleTag `ebml:"SimpleTag"`
	}
	mkvSimpleTag struct {
		TagName   string `ebml:"TagName"`
		TagString string `ebml:"TagString"`
	}
	mkvCluster struct {
		Timecode    uint64          `ebml:"Timecode"`
		SimpleBlock []ebml.Block    `ebml:"SimpleBlock,omitempty"`
		BlockGroup  []mkvBlockGroup `ebml:"BlockGroup,omitempty"`
	}
	mkvBlockGroup struct {
		Block ebml.Block `ebml:"Block"`
	}
)

// These are the cameras of the recordings in tests: depth of 320 × 288 and colour of 1280 × 720,
// without distortion, at the same position.
const (
	testDepthWidth, testDepthHeight = 320, 288
	testColorWidth, testColorHeight = 1280, 720
)

// testCalibration is a calibration with parallel cameras: the colour camera is 50 mm to the right.
func testCalibration(t testing.TB) []byte {
	t.Helper()
	camera := func(location string, width, height, focal float64, translation []float64) map[string]any {
		parameters := make([]float64, 14)
		parameters[0], parameters[1] = 0.5, 0.5
		parameters[2], parameters[3] = focal, focal*width/height
		return map[string]any{
			"Intrinsics": map[string]any{
				"ModelParameterCount": 14,
				"ModelParameters":     parameters,
				"ModelType":           modelBrown,
			},
			"Location": location, "MetricRadius": 0, "SensorWidth": width, "SensorHeight": height,
			"Rt": map[string]any{"Rotation": []float64{1, 0, 0, 0, 1, 0, 0, 0, 1}, "Translation": translation},
		}
	}
	data, err := json.Marshal(map[string]any{"CalibrationInformation": map[string]any{"Cameras": []any{
		camera(locationDepth, 1024, 1024, 0.5, []float64{0, 0, 0}),
		camera(locationColor, 4096, 3072, 0.5, []float64{-0.05, 0, 0}),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func bitmapHeader(width, height int, format string) []byte {
	header := make([]byte, 40)
	binary.LittleEndian.PutUint32(header, 40)
	binary.LittleEndian.PutUint32(header[4:], uint32(width))
	binary.LittleEndian.PutUint32(header[8:], uint32(height))
	copy(header[16:], format)
	return header
}

// testDepth is a wall at the given distance.
func testDepth(millimetres uint16) []byte {
	data := make([]byte, 0, 2*testDepthWidth*testDepthHeight)
	for range testDepthWidth * testDepthHeight {
		data = binary.BigEndian.AppendUint16(data, millimetres)
	}
	return data
}

// testShade encodes the position of a pixel in its luma; chroma is that of orange.
func testShade(x, y int) (luma, cb, cr uint8) {
	return uint8(60 + 100*x/testColorWidth + 60*y/testColorHeight), 100, 160
}

// testColors are pictures of the shades, made on first use.
var testColors = map[colorFormat]func() []byte{
	formatMJPG: sync.OnceValue(func() []byte {
		picture := image.NewYCbCr(image.Rect(0, 0, testColorWidth, testColorHeight), image.YCbCrSubsampleRatio420)
		for i := range picture.Y {
			x, y := i%testColorWidth, i/testColorWidth
			c := picture.COffset(x, y)
			picture.Y[i], picture.Cb[c], picture.Cr[c] = testShade(x, y)
		}
		var out bytes.Buffer
		if err := jpeg.Encode(&out, picture, &jpeg.Options{Quality: 95}); err != nil {
			panic("a picture cannot be encoded as JPEG: " + err.Error())
		}
		return out.Bytes()
	}),
	formatNV12: sync.OnceValue(func() (data []byte) {
		for i := range testColorWidth * testColorHeight {
			luma, _, _ := testShade(i%testColorWidth, i/testColorWidth)
			data = append(data, luma)
		}
		return append(data, bytes.Repeat([]byte{100, 160}, testColorWidth*testColorHeight/4)...)
	}),
	formatYUY2: sync.OnceValue(func() (data []byte) {
		for i := range testColorWidth * testColorHeight {
			luma, cb, cr := testShade(i%testColorWidth, i/testColorWidth)
			data = append(data, luma, [2]uint8{cb, cr}[i%2])
		}
		return data
	}),
	formatBGRA: sync.OnceValue(func() (data []byte) {
		for i := range testColorWidth * testColorHeight {
			r, g, b := color.YCbCrToRGB(testShade(i%testColorWidth, i/testColorWidth))
			data = append(data, b, g, r, 255)
		}
		return data
	}),
}

// newFile is a recording of the given number of frames at 30 per second, in ticks of a microsecond.
// The wall is at 1 m, and 10 mm nearer with each frame. Depth is in simple blocks, colour in
// groups; both forms occur in practice.
func newFile(t testing.TB, format colorFormat, frames int) *mkvFile {
	t.Helper()
	file := &mkvFile{Header: mkvHeader{"matroska"}}
	s := &file.Segment
	s.Info.TimecodeScale = 1000
	track := func(number uint64, name string, private []byte) mkvTrack {
		return mkvTrack{
			TrackNumber:     number,
			Name:            name,
			CodecID:         "V_MS/VFW/FOURCC",
			CodecPrivate:    private,
			DefaultDuration: 33_333_333,
		}
	}
	s.Tracks.TrackEntry = []mkvTrack{
		track(1, "COLOR", bitmapHeader(testColorWidth, testColorHeight, string(format))),
		track(2, "DEPTH", bitmapHeader(testDepthWidth, testDepthHeight, "b16g")),
		track(3, "IR", bitmapHeader(testDepthWidth, testDepthHeight, "b16g")),
	}
	s.Attachments.AttachedFile = []mkvAttached{{"notes.txt", []byte("none")}, {"calibration.json", testCalibration(t)}}
	tag := func(name, value string) mkvTag { return mkvTag{[]mkvSimpleTag{{name, value}}} }
	s.Tags.Tag = []mkvTag{
		tag(
			"K4A_CALIBRATION_FILE",
			"calibration.json",
		), tag("K4A_DEVICE_SERIAL_NUMBER", "000123"), tag("K4A_DEPTH_DELAY_NS", "1000000"),
		tag("K4A_WIRED_SYNC_MODE", "SUBORDINATE"), tag("K4A_START_OFFSET_NS", "5000000"),
	}
	colors := testColors[format]()
	for i := range frames {
		s.Cluster = append(s.Cluster, mkvCluster{
			Timecode:    uint64(i) * 33_333,
			SimpleBlock: []ebml.Block{{TrackNumber: 2, Timecode: 1000, Data: [][]byte{testDepth(uint16(1000 - 10*i))}}},
			BlockGroup:  []mkvBlockGroup{{ebml.Block{TrackNumber: 1, Timecode: 3, Data: [][]byte{colors}}}},
		})
	}
	return file
}

func marshal(t testing.TB, file *mkvFile) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := ebml.Marshal(file, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
