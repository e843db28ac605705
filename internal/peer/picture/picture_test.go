package picture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/switching"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// vp8 returns a frame of VP8 with a number of bytes.
func vp8(key bool, size int) []byte {
	frame := make([]byte, size)
	if key {
		copy(frame, []byte{0x10, 2, 0, 0x9d, 1, 0x2a, 0x40, 1, 0xb4, 0})
	} else {
		frame[0] = 0x31
	}
	return frame
}

// ivf returns a file with a key frame at every multiple of interval, in a time base of 1/rate.
func ivf(frames, interval int, rate uint32) []byte {
	var file bytes.Buffer
	file.WriteString("DKIF\x00\x00\x20\x00VP80")
	for _, v := range []any{uint16(320), uint16(180), rate, uint32(1), uint32(frames), uint32(0)} {
		_ = binary.Write(&file, binary.LittleEndian, v)
	}
	for i := range frames {
		frame := vp8(i%interval == 0, 100+i)
		_ = binary.Write(&file, binary.LittleEndian, uint32(len(frame)))
		_ = binary.Write(&file, binary.LittleEndian, uint64(i))
		file.Write(frame)
	}
	return file.Bytes()
}

// h264 returns a file with a parameter set, an IDR picture of two slices, and three other pictures.
func h264() []byte {
	var file bytes.Buffer
	for _, nal := range [][]byte{
		{0x67, 0x42, 0xe0, 0x1f}, {0x68, 0xce}, {0x65, 0x88, 1}, {0x65, 0x20, 2},
		{0x41, 0x9a, 3}, {0x06, 5, 1}, {0x41, 0x9a, 4}, {0x41, 0x9a, 5},
	} {
		file.Write(startCode)
		file.Write(nal)
	}
	return file.Bytes()
}

func TestRead(t *testing.T) {
	r, err := Read(bytes.NewReader(ivf(60, 20, 15)))
	if err != nil {
		t.Fatal(err)
	}
	if r.MIMEType != volumetric.MIMEVP8 || r.Format != (Format{320, 180, 15}) || len(r.Frames) != 60 {
		t.Errorf("IVF is %s in %+v with %d frames", r.MIMEType, r.Format, len(r.Frames))
	}
	if got := r.Bitrate(); got < 15_500 || got > 15_600 {
		t.Errorf("the rate is %v, expected 15 × 8 × 129.5 bit/s", got)
	}
	for i, f := range r.Frames {
		if f.Key != (i%20 == 0) {
			t.Errorf("frame %d: key is %v", i, f.Key)
		}
	}
	r, err = Read(bytes.NewReader(h264()))
	if err != nil {
		t.Fatal(err)
	}
	var keys []bool
	for _, f := range r.Frames {
		keys = append(keys, f.Key)
	}
	if r.MIMEType != volumetric.MIMEH264 || !slices.Equal(keys, []bool{true, false, false, false}) {
		t.Errorf("H.264 is %s with key frames %v", r.MIMEType, keys)
	}
}

func TestReadErrors(t *testing.T) {
	vp9 := ivf(2, 1, 30)
	copy(vp9[8:], "VP90")
	second := ivf(3, 2, 30)[ivfHeader+ivfFrameHeader+100:][:ivfFrameHeader+101]
	for name, data := range map[string][]byte{
		"nothing": nil, "a header": ivf(0, 1, 30), "a broken frame": ivf(3, 1, 30)[:180], "VP9": vp9,
		"text": []byte("This is not a picture."), "no key frame": append(ivf(0, 1, 30), second...),
	} {
		if r, err := Read(bytes.NewReader(data)); !errors.Is(err, ErrFile) {
			t.Errorf("%s: got %v, %v, expected an error", name, r, err)
		}
	}
}

func TestParseFiles(t *testing.T) {
	folder := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	low, high := write("low.ivf", ivf(4, 2, 15)), write("high.h264", h264())
	recordings, err := ParseFiles(high + "@640x360@25," + high)
	if err != nil {
		t.Fatal(err)
	}
	if got := recordings[0].Format; got != (Format{640, 360, 25}) {
		t.Errorf("the format is %+v", got)
	}
	if got := recordings[1].Format; got != (Format{0, 0, 30}) {
		t.Errorf("the format without one is %+v", got)
	}
	for list, want := range map[string]string{
		"": "is not FILE", low + "@1x": "WIDTHxHEIGHT", low + "@0x1": "WIDTHxHEIGHT", low + "@2x2@0": "frame rate",
		low + "@2x2x2": "WIDTHxHEIGHT", low + "@2x2@30@1": "is not FILE", low + "," + high: "expected video/VP8",
		filepath.Join(folder, "absent"): "no such file",
	} {
		if _, err := ParseFiles(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, expected an error with %q", list, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(ivf(3, 2, 30))
	f.Add(h264())
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Read(bytes.NewReader(data))
		if err == nil && (len(r.Frames) == 0 || !r.Frames[0].Key || r.Bitrate() < 0) {
			t.Errorf("%d frames at %v", len(r.Frames), r.Bitrate())
		}
	})
}

// sink collects packets of the wanted qualities until the context ends.
type sink struct {
	wanted  [2]bool
	key     [2]int // key frames by quality
	frames  [2]int
	refuses bool
	end     func()
	left    int
}

func (s *sink) Wanted(_ int, q volumetric.Quality) bool {
	if s.left--; s.left <= 0 {
		s.end()
	}
	return s.wanted[q]
}

func (s *sink) WritePackets(_ int, q volumetric.Quality, _ time.Time, payloads [][]byte) (bool, error) {
	if s.refuses {
		return false, client.ErrNotConnected
	}
	s.frames[q]++
	if switching.KeyFrameVP8(payloads[0]) {
		s.key[q]++
	}
	return true, nil
}

// TestPlayer sends the wanted quality, and a key frame first and on request.
func TestPlayer(t *testing.T) {
	r, err := Read(bytes.NewReader(ivf(40, 20, 1000)))
	if err != nil {
		t.Fatal(err)
	}
	player := NewRecordingPlayer("webcam", volumetric.SourceCamera, []*Recording{r, r})
	description := player.Publication()
	if err := description.Validate(); err != nil {
		t.Fatal(err)
	}
	if q := description.Qualities[1]; q.Width != 320 || q.Height != 180 || q.FrameRate != 1000 || q.Bitrate == 0 {
		t.Errorf("the quality is %+v", q)
	}
	run := func(frames int, s *sink) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		s.end, s.left = end, 2*frames
		if err := player.Run(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	s := &sink{wanted: [2]bool{true, false}}
	run(10, s)
	if s.frames[0] < 9 || s.frames[1] != 0 || s.key[0] != 1 {
		t.Errorf("%v frames with %v key frames were sent, expected those of the first quality", s.frames, s.key)
	}
	player.WantKeyFrame(0)
	player.WantKeyFrame(7)
	s.key = [2]int{}
	run(5, s)
	if s.key[0] != 1 {
		t.Errorf("%d key frames after a request, expected 1", s.key[0])
	}
	s.refuses = true
	run(2, s)
	if c := player.Counts(); c.Sent < 13 || c.KeyFrames != 2 || c.Unwanted < 13 || c.Unsent < 1 {
		t.Errorf("counts are %+v", c)
	}
}

// train returns the packets of frames of three packets each; keys has the indices of key frames.
func train(frames int, keys ...int) (packets []*rtp.Packet) {
	for f := range frames {
		for i := range 3 {
			payload := []byte{0, 1, 2}
			if i == 0 {
				payload = append([]byte{0x10}, vp8(slices.Contains(keys, f), 20)...)
			}
			packets = append(packets, &rtp.Packet{Header: rtp.Header{
				SequenceNumber: uint16(65530 + len(packets)), Timestamp: uint32(f) * 3000, Marker: i == 2,
			}, Payload: payload})
		}
	}
	return packets
}

func TestAssembler(t *testing.T) {
	begin := time.Unix(1e9, 0)
	for _, c := range []struct {
		name string
		// order has the indices of packets; missing ones are lost.
		order                     func(all int) []int
		frames, keys, undecodable int
	}{
		{"in order", func(n int) []int { return upTo(n) }, 8, 2, 0},
		{"reordered and repeated", func(n int) []int {
			order := upTo(n)
			order[3], order[5], order[7] = 5, 3, 8
			order[8] = 7
			return append(order[:9], append([]int{4, 4}, order[9:]...)...)
		}, 8, 2, 0},
		{"a lost packet of the second frame", func(n int) []int { return slices.Delete(upTo(n), 4, 5) }, 7, 2, 2},
		{"the first two packets", func(n int) []int { return upTo(n)[2:] }, 7, 1, 3},
		{"a lost end", func(n int) []int { return slices.Delete(upTo(n), 5, 6) }, 6, 2, 1},
	} {
		a := NewAssembler(volumetric.MIMEVP8, 10*time.Millisecond)
		packets := train(8, 0, 4)
		var frames []Received
		for i, index := range c.order(len(packets)) {
			frames = append(frames, a.Push(packets[index], begin.Add(time.Duration(i)*3*time.Millisecond))...)
		}
		keys, undecodable := 0, 0
		for _, f := range frames {
			if f.Key {
				keys++
			}
			if !f.Decodable {
				undecodable++
			}
		}
		if len(frames) != c.frames || keys != c.keys || undecodable != c.undecodable {
			t.Errorf("%s: %d frames, %d key frames, %d undecodable, expected %d, %d, %d", c.name, len(frames), keys,
				undecodable, c.frames, c.keys, c.undecodable)
		}
		if a.Broken() {
			t.Errorf("%s: broken after a key frame", c.name)
		}
	}
}

// TestReception counts gaps only while the picture is on, and asks for a key frame after a loss.
func TestReception(t *testing.T) {
	begin := time.Unix(1e9, 0)
	at := begin
	packets := train(8, 0, 4)
	r := NewReception(volumetric.MIMEVP8, 10*time.Millisecond)
	push := func(from, to int, pause time.Duration) {
		at = at.Add(pause)
		for _, p := range packets[from:to] {
			r.Push(p, at)
		}
	}
	push(0, 3, 0)
	r.Sending(1)
	push(3, 6, 40*time.Millisecond)
	r.Sending(volumetric.QualityOff)
	push(6, 9, 5*time.Millisecond) // under way
	r.Sending(0)
	push(9, 12, time.Minute)
	push(12, 15, 30*time.Millisecond)
	if r.LongestGap != 40*time.Millisecond || r.Frames != 5 || r.KeyFrames != 2 || r.Undecodable != 0 {
		t.Errorf("counts are %+v", r.ReceptionCounts)
	}
	if r.WantsKeyFrame(at) {
		t.Error("a key frame is wanted without a loss")
	}
	push(16, 18, 20*time.Millisecond) // packet 15 is missing
	push(18, 21, 20*time.Millisecond)
	if !r.WantsKeyFrame(at) || r.WantsKeyFrame(at.Add(keyFrameInterval/2)) ||
		!r.WantsKeyFrame(at.Add(keyFrameInterval)) {
		t.Error("a key frame is not wanted every half second after a loss")
	}
	r.End(at.Add(time.Second))
	if r.LongestGap < time.Second {
		t.Errorf("the longest gap is %v at the end", r.LongestGap)
	}
}

func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func FuzzAssembler(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, data []byte) {
		a := NewAssembler(volumetric.MIMEVP8, 10*time.Millisecond)
		at := time.Unix(1e9, 0)
		for len(data) >= 4 {
			p := &rtp.Packet{Header: rtp.Header{SequenceNumber: uint16(data[0]) << (data[1] & 9),
				Timestamp: uint32(data[1]), Marker: data[2]&1 != 0}, Payload: data[3:min(len(data), 12)]}
			a.Push(p, at)
			at = at.Add(time.Duration(data[2]) * time.Millisecond)
			if len(a.waiting) > maxWaiting+1 {
				t.Fatalf("%d packets wait", len(a.waiting))
			}
			data = data[4:]
		}
	})
}
