package browser

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"testing"
	"time"

	"golang.org/x/image/webp"
)

// animation is an animated WebP file, "WebP Container Specification" (developers.google.com/speed/webp).
type animation struct {
	width, height int
	frames        []animationFrame
}

// animationFrame is one picture: the chunks of a still WebP file, without the chunk VP8X.
type animationFrame struct {
	chunks   []byte
	duration time.Duration
}

var errAnimation = errors.New("malformed WebP file")

const (
	// stillFrame is the header of frames that replace the whole picture: no blending, no disposal.
	stillFrame = 2
	// animated is the flag of animations in the chunk VP8X.
	animated = 2
	// animationHeader is the length of the fields of a frame before its chunks.
	animationHeader = 16
)

// add adds a still WebP file, which has the size of the animation.
func (a *animation) add(still []byte, duration time.Duration) error {
	chunks, err := chunksOf(still)
	if err != nil {
		return err
	}
	frame := animationFrame{duration: duration}
	for _, c := range chunks {
		switch c.name {
		case "ALPH", "VP8 ", "VP8L":
			frame.chunks = appendChunk(frame.chunks, c.name, c.data)
		}
	}
	if len(frame.chunks) == 0 {
		return fmt.Errorf("%w: no picture in %d bytes", errAnimation, len(still))
	}
	a.frames = append(a.frames, frame)
	return nil
}

// encode returns the file, which repeats for ever.
func (a *animation) encode() []byte {
	extended := append([]byte{animated, 0, 0, 0}, append(three(a.width-1), three(a.height-1)...)...)
	body := appendChunk([]byte("WEBP"), "VP8X", extended)
	// The colour of the ground, which no frame shows, and the number of repetitions.
	body = appendChunk(body, "ANIM", make([]byte, 6))
	for _, f := range a.frames {
		var data []byte
		for _, v := range []int{0, 0, a.width - 1, a.height - 1, int(f.duration.Milliseconds())} {
			data = append(data, three(v)...)
		}
		body = appendChunk(body, "ANMF", append(append(data, stillFrame), f.chunks...))
	}
	return appendChunk(nil, "RIFF", body)
}

// parseAnimation reads an animation that encode has made.
func parseAnimation(file []byte) (*animation, error) {
	chunks, err := chunksOf(file)
	if err != nil {
		return nil, err
	}
	a := &animation{}
	for _, c := range chunks {
		switch {
		case c.name == "VP8X" && len(c.data) == 10 && c.data[0]&animated != 0:
			a.width, a.height = integer(c.data[4:])+1, integer(c.data[7:])+1
		case c.name == "ANMF" && len(c.data) > animationHeader:
			a.frames = append(a.frames, animationFrame{chunks: c.data[animationHeader:],
				duration: time.Duration(integer(c.data[12:])) * time.Millisecond})
		case c.name != "ANIM":
			return nil, fmt.Errorf("%w: a chunk %q of %d bytes", errAnimation, c.name, len(c.data))
		}
	}
	return a, nil
}

// picture decodes one frame.
func (a *animation) picture(index int) (image.Image, error) {
	return webp.Decode(bytes.NewReader(appendChunk(nil, "RIFF", append([]byte("WEBP"), a.frames[index].chunks...))))
}

// chunk is a chunk of a RIFF file.
type chunk struct {
	name string
	data []byte
}

// chunksOf returns the chunks of a WebP file.
func chunksOf(file []byte) ([]chunk, error) {
	if len(file) < 12 || string(file[:4]) != "RIFF" || string(file[8:12]) != "WEBP" ||
		int(binary.LittleEndian.Uint32(file[4:])) != len(file)-8 {
		return nil, fmt.Errorf("%w: %d bytes without the head of such a file", errAnimation, len(file))
	}
	var chunks []chunk
	for rest := file[12:]; len(rest) > 0; {
		if len(rest) < 8 {
			return nil, fmt.Errorf("%w: %d bytes after the last chunk", errAnimation, len(rest))
		}
		size := int(binary.LittleEndian.Uint32(rest[4:]))
		padded := 8 + size + size%2
		if padded > len(rest) {
			return nil, fmt.Errorf("%w: a chunk of %d bytes, %d are left", errAnimation, size, len(rest)-8)
		}
		chunks = append(chunks, chunk{string(rest[:4]), rest[8 : 8+size]})
		rest = rest[padded:]
	}
	return chunks, nil
}

// appendChunk appends a chunk with an even length.
func appendChunk(dst []byte, name string, data []byte) []byte {
	dst = append(dst, name...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(data)))
	dst = append(dst, data...)
	return append(dst, make([]byte, len(data)%2)...)
}

// three returns a number in three bytes, and integer reads it.
func three(v int) []byte { return []byte{byte(v), byte(v >> 8), byte(v >> 16)} }

func integer(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// still is a WebP file of 2 × 2 pixels of one colour, without losses: four prefix codes of a single symbol each, and
// 255 for the opacity.
func still(c color.RGBA) []byte {
	var bits uint64
	var count int
	var data []byte
	put := func(value uint64, n int) {
		bits |= value << count
		for count += n; count >= 8; count -= 8 {
			data, bits = append(data, byte(bits)), bits>>8
		}
	}
	put(0x2f, 8)
	put(1, 14) // width - 1
	put(1, 14) // height - 1
	put(0, 4)  // no opacity, version 0
	put(0, 1)  // no transform
	put(0, 2)  // no cache of colours, one group of codes
	for _, symbol := range []byte{c.G, c.R, c.B, 255, 0} {
		put(1, 1) // a simple code
		put(0, 1) // of one symbol
		put(1, 1) // of eight bits
		put(uint64(symbol), 8)
	}
	put(0, 7)
	return appendChunk(nil, "RIFF", appendChunk([]byte("WEBP"), "VP8L", data))
}

// TestAnimation reads back what was put into an animation.
func TestAnimation(t *testing.T) {
	a := &animation{width: 2, height: 2}
	colors := []color.RGBA{{R: 200, G: 10, B: 30, A: 255}, {G: 90, B: 255, A: 255}}
	for i, c := range colors {
		if err := a.add(still(c), time.Duration(33+i)*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	file := a.encode()
	read, err := parseAnimation(file)
	if err != nil {
		t.Fatal(err)
	}
	if read.width != 2 || read.height != 2 || len(read.frames) != 2 || read.frames[1].duration != 34*time.Millisecond {
		t.Fatalf("%d frames of %d × %d", len(read.frames), read.width, read.height)
	}
	for i, want := range colors {
		picture, err := read.picture(i)
		if err != nil {
			t.Fatal(err)
		}
		if got := color.RGBAModel.Convert(picture.At(1, 1)); got != want || picture.Bounds() != image.Rect(0, 0, 2, 2) {
			t.Errorf("frame %d is %v in %v, expected %v", i, got, picture.Bounds(), want)
		}
	}
	for _, broken := range [][]byte{nil, file[:len(file)-2], []byte("RIFF\x04\x00\x00\x00WEBP\x00")} {
		if _, err := parseAnimation(broken); !errors.Is(err, errAnimation) {
			t.Errorf("%d bytes are accepted", len(broken))
		}
		if err := a.add(broken, time.Second); !errors.Is(err, errAnimation) {
			t.Errorf("a still of %d bytes is accepted", len(broken))
		}
	}
}
