package switching

import "testing"

// vp8Key is the beginning of a VP8 key frame of 640 × 480: frame tag, start code, dimensions.
var vp8Key = []byte{0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a, 0x80, 0x02, 0xe0, 0x01}

func join(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

func TestKeyFrameVP8(t *testing.T) {
	inter := join([]byte{0x11}, vp8Key[1:])
	for _, test := range []struct {
		name    string
		payload []byte
		want    bool
	}{
		{"key frame", join([]byte{0x10}, vp8Key), true},
		{"inter frame", join([]byte{0x10}, inter), false},
		{"not the start of a partition", join([]byte{0x00}, vp8Key), false},
		{"second partition", join([]byte{0x11}, vp8Key), false},
		{"non-reference bit", join([]byte{0x30}, vp8Key), true},
		{"picture ID of 7 bits", join([]byte{0x90, 0x80, 0x7f}, vp8Key), true},
		{"picture ID of 15 bits", join([]byte{0x90, 0x80, 0x80, 0x01}, vp8Key), true},
		{"everything", join([]byte{0x90, 0xf0, 0x80, 0x01, 0x05, 0x60}, vp8Key), true},
		{"TL0PICIDX and KEYIDX", join([]byte{0x90, 0x50, 0x05, 0x01}, vp8Key), true},
		{"extension without fields", join([]byte{0x90, 0x00}, vp8Key), true},
		{"everything, inter frame", join([]byte{0x90, 0xf0, 0x80, 0x01, 0x05, 0x60}, inter), false},
		{"no start code", join([]byte{0x10}, vp8Key[:3], []byte{0, 0, 0}, vp8Key[6:]), false},
		{"frame header cut", join([]byte{0x10}, vp8Key[:9]), false},
		{"empty", nil, false},
		{"descriptor only", []byte{0x10}, false},
		{"extension cut", []byte{0x90}, false},
		{"picture ID cut", []byte{0x90, 0x80}, false},
		{"long picture ID cut", []byte{0x90, 0x80, 0x80}, false},
		{"temporal layer cut", []byte{0x90, 0x60, 0x01}, false},
	} {
		if got := KeyFrameVP8(test.payload); got != test.want {
			t.Errorf("%s: got %t, expected %t", test.name, got, test.want)
		}
	}
}

func TestKeyFrameH264(t *testing.T) {
	for _, test := range []struct {
		name    string
		payload []byte
		want    bool
	}{
		{"IDR", []byte{0x65, 0x88}, true},
		{"SPS", []byte{0x67, 0x42}, true},
		{"PPS alone", []byte{0x68, 0xce}, false},
		{"SEI", []byte{0x06, 0x05}, false},
		{"slice", []byte{0x41, 0x9a}, false},
		{"STAP-A of SPS and PPS", []byte{0x78, 0, 2, 0x67, 0x42, 0, 2, 0x68, 0xce}, true},
		{"STAP-A of SEI and IDR", []byte{0x78, 0, 1, 0x06, 0, 1, 0x65}, true},
		{"STAP-A of slices", []byte{0x78, 0, 1, 0x41, 0, 1, 0x41}, false},
		{"STAP-A that claims too much", []byte{0x78, 0, 9, 0x67, 0x42}, false},
		{"STAP-A with a broken second unit", []byte{0x78, 0, 1, 0x67, 0, 9, 0x68}, false},
		{"STAP-A with an empty unit", []byte{0x78, 0, 0, 0x67}, false},
		{"STAP-A cut", []byte{0x78, 0}, false},
		{"STAP-A with the forbidden bit inside", []byte{0x78, 0, 1, 0xe7}, false},
		{"FU-A start of IDR", []byte{0x7c, 0x85, 0x88}, true},
		{"FU-A start of SPS", []byte{0x7c, 0x87, 0x42}, true},
		{"FU-A middle of IDR", []byte{0x7c, 0x05, 0x88}, false},
		{"FU-A end of IDR", []byte{0x7c, 0x45, 0x88}, false},
		{"FU-A with start and end", []byte{0x7c, 0xc5, 0x88}, false},
		{"FU-A start of slice", []byte{0x7c, 0x81, 0x9a}, false},
		{"FU-A without fragment", []byte{0x7c, 0x85}, false},
		{"forbidden bit", []byte{0xe5, 0x88}, false},
		{"empty", nil, false},
		{"header only", []byte{0x65}, false},
	} {
		if got := KeyFrameH264(test.payload); got != test.want {
			t.Errorf("%s: got %t, expected %t", test.name, got, test.want)
		}
	}
}

func TestKeyFrame(t *testing.T) {
	idr := []byte{0x65, 0x88}
	for _, test := range []struct {
		mimeType   string
		needs      bool
		idr, slice bool
	}{
		{"video/H264", true, true, false},
		{"VIDEO/h264", true, true, false},
		{"video/VP8", true, false, false},
		{"video/volumetric", false, true, true},
		{"video/opaque", false, true, true},
	} {
		if got := NeedsKey(test.mimeType); got != test.needs {
			t.Errorf("%s needs key frames: got %t, expected %t", test.mimeType, got, test.needs)
		}
		if got := KeyFrame(test.mimeType, idr); got != test.idr {
			t.Errorf("%s: an IDR picture is a key frame: got %t, expected %t", test.mimeType, got, test.idr)
		}
		if got := KeyFrame(test.mimeType, []byte{0x41, 0x9a}); got != test.slice {
			t.Errorf("%s: a slice is a key frame: got %t, expected %t", test.mimeType, got, test.slice)
		}
	}
}

func FuzzKeyFrame(f *testing.F) {
	f.Add(join([]byte{0x90, 0xf0, 0x80, 0x01, 0x05, 0x60}, vp8Key))
	f.Add([]byte{0x78, 0, 2, 0x67, 0x42, 0, 2, 0x68, 0xce})
	f.Add([]byte{0x7c, 0x85, 0x88})
	f.Fuzz(func(t *testing.T, b []byte) {
		if KeyFrameVP8(b) {
			// A key frame is recognised whatever byte follows, and only with every byte up to its
			// start code.
			if !KeyFrameVP8(append(b[:len(b):len(b)], 0)) || KeyFrameVP8(b[:vp8FrameHeader]) {
				t.Errorf("%x", b)
			}
		}
		if KeyFrameH264(b) && (len(b) < 2 || b[0]&0x80 != 0) {
			t.Errorf("%x", b)
		}
	})
}
