package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/pion/webrtc/v4/pkg/media/h264reader"

	"github.com/volsfu/volsfu/pkg/switching"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrFile is wrapped with the details of an invalid file.
var ErrFile = errors.New("invalid recording of a picture")

// maxFileBytes is five minutes at 7 Mbit/s. A recording is held in memory.
const maxFileBytes = 256 << 20

// defaultFrameRate is the frame rate of recordings that state none, in frames per second.
const defaultFrameRate = 30

// maxFrameRate is the highest frame rate of a publication, in frames per second.
const maxFrameRate = 1000

// Format is the size and the frame rate of a picture. Zero values are unknown.
type Format struct {
	Width, Height int
	FrameRate     float64
}

// Recording is an encoded picture of one quality: frames in the order of decoding. The first one is a key frame.
type Recording struct {
	Format
	// MIMEType is volumetric.MIMEVP8 or volumetric.MIMEH264.
	MIMEType string
	Frames   []Frame
}

// Frame is one encoded frame: VP8 without container, or the NAL units of an H.264 access unit with start codes.
type Frame struct {
	Data []byte
	Key  bool
}

// Open reads a file: IVF with VP8, or H.264 with start codes (Annex B). Values of format that are not zero replace
// those of the file.
func Open(name string, format Format) (*Recording, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	recording, err := Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if format.Width > 0 {
		recording.Width, recording.Height = format.Width, format.Height
	}
	if format.FrameRate > 0 {
		recording.FrameRate = format.FrameRate
	}
	return recording, nil
}

// Read reads a recording: IVF if the data begins with its signature, else H.264. Frames before the first key frame are
// left out.
func Read(r io.Reader) (*Recording, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxFileBytes:
		return nil, fmt.Errorf("%w: the file is longer than %d bytes", ErrFile, maxFileBytes)
	}
	var recording *Recording
	if bytes.HasPrefix(data, []byte("DKIF")) {
		recording, err = readIVF(data)
	} else {
		recording, err = readH264(data)
	}
	if err != nil {
		return nil, err
	}
	for len(recording.Frames) > 0 && !recording.Frames[0].Key {
		recording.Frames = recording.Frames[1:]
	}
	if len(recording.Frames) == 0 {
		return nil, fmt.Errorf("%w: no key frame, expected IVF with VP8 or H.264 with start codes", ErrFile)
	}
	return recording, nil
}

// The format of IVF: a header with the codec, the size and the time base, and for each frame a header with the size and
// the time. All numbers are little-endian.
const (
	ivfHeader      = 32
	ivfFrameHeader = 12
)

// readIVF reads an IVF file.
func readIVF(data []byte) (*Recording, error) {
	order := binary.LittleEndian
	if len(data) < ivfHeader || int(order.Uint16(data[6:])) != ivfHeader {
		return nil, fmt.Errorf("%w: the header of the IVF file is not one of %d bytes", ErrFile, ivfHeader)
	}
	if codec := data[8:12]; string(codec) != "VP80" {
		return nil, fmt.Errorf("%w: the codec is %q, expected VP80", ErrFile, codec)
	}
	r := &Recording{
		Format:   Format{Width: int(order.Uint16(data[12:])), Height: int(order.Uint16(data[14:]))},
		MIMEType: volumetric.MIMEVP8,
	}
	ticksPerSecond := float64(order.Uint32(data[16:])) / float64(max(order.Uint32(data[20:]), 1))
	var first, last uint64
	for rest := data[ivfHeader:]; len(rest) > 0; {
		if len(rest) < ivfFrameHeader || uint64(order.Uint32(rest)) > uint64(len(rest)-ivfFrameHeader) {
			return nil, fmt.Errorf("%w: frame %d is not complete", ErrFile, len(r.Frames))
		}
		end := ivfFrameHeader + int(order.Uint32(rest))
		if last = order.Uint64(rest[4:]); len(r.Frames) == 0 {
			first = last
		}
		frame := rest[ivfFrameHeader:end]
		r.Frames = append(r.Frames, Frame{Data: frame, Key: keyVP8(frame)})
		rest = rest[end:]
	}
	r.FrameRate = defaultFrameRate
	if n := len(r.Frames); n > 1 && last > first {
		rate := math.Round(100*ticksPerSecond*float64(n-1)/float64(last-first)) / 100
		if rate > 0 && rate <= maxFrameRate {
			r.FrameRate = rate
		}
	}
	return r, nil
}

// keyVP8 reports whether a VP8 frame is a key frame.
func keyVP8(frame []byte) bool {
	return switching.KeyFrameVP8(append([]byte{0x10}, frame[:min(len(frame), 16)]...))
}

// Types of NAL units that begin an access unit if they follow a slice (ITU-T H.264 section 7.4.1.2.3).
const (
	nalSlice, nalIDR = 1, 5
	nalSEI, nalAUD   = 6, 9
)

var startCode = []byte{0, 0, 0, 1}

// readH264 reads H.264 with start codes and joins the NAL units to access units.
func readH264(data []byte) (*Recording, error) {
	reader, err := h264reader.NewReaderWithOptions(bytes.NewReader(data), h264reader.WithIncludeSEI(true))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	r := &Recording{Format: Format{FrameRate: defaultFrameRate}, MIMEType: volumetric.MIMEH264}
	var unit Frame
	sliced := false
	for {
		nal, err := reader.NextNAL()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: frame %d: %w", ErrFile, len(r.Frames), err)
		}
		if len(nal.Data) == 0 {
			continue
		}
		kind := int(nal.Data[0] & 0x1f)
		slice := kind >= nalSlice && kind <= nalIDR
		// A slice begins with first_mb_in_slice in exponential Golomb code, whose first bit is 1 for 0.
		begins := kind >= nalSEI && kind <= nalAUD || slice && len(nal.Data) > 1 && nal.Data[1]&0x80 != 0
		if sliced && begins {
			r.Frames = append(r.Frames, unit)
			unit, sliced = Frame{}, false
		}
		sliced = sliced || slice
		unit.Key = unit.Key || kind == nalIDR
		unit.Data = append(append(unit.Data, startCode...), nal.Data...)
	}
	if sliced {
		r.Frames = append(r.Frames, unit)
	}
	return r, nil
}

// Bitrate returns the mean bit rate of the recording.
func (r *Recording) Bitrate() volumetric.Bitrate {
	bytes := 0
	for i := range r.Frames {
		bytes += len(r.Frames[i].Data)
	}
	return volumetric.Bitrate(8 * float64(bytes) * r.FrameRate / float64(len(r.Frames)))
}

// ParseFiles opens the recordings of a picture in ascending quality, from a list as in
//
//	FILE[@WIDTHxHEIGHT[@FPS]],FILE…
//
// Errors name the file. The codec of all files must be the same.
func ParseFiles(list string) ([]*Recording, error) {
	var recordings []*Recording
	for field := range strings.SplitSeq(list, ",") {
		name, format, err := parseFile(field)
		if err != nil {
			return nil, err
		}
		r, err := Open(name, format)
		if err != nil {
			return nil, err
		}
		if len(recordings) > 0 && r.MIMEType != recordings[0].MIMEType {
			return nil, fmt.Errorf("%s: the codec is %s, expected %s as in the first file", name, r.MIMEType,
				recordings[0].MIMEType)
		}
		recordings = append(recordings, r)
	}
	if n := len(recordings); n > volumetric.MaxQualities {
		return nil, fmt.Errorf("%d files, expected at most %d", n, volumetric.MaxQualities)
	}
	return recordings, nil
}

// parseFile splits an entry of ParseFiles.
func parseFile(field string) (name string, format Format, err error) {
	parts := strings.Split(field, "@")
	if len(parts) > 3 || parts[0] == "" {
		return "", format, fmt.Errorf("%q is not FILE[@WIDTHxHEIGHT[@FPS]]", field)
	}
	if len(parts) > 1 {
		n, scanned := fmt.Sscanf(parts[1]+" ", "%dx%d ", &format.Width, &format.Height)
		if n != 2 || scanned != nil || format.Width < 1 || format.Width > volumetric.MaxPictureSide ||
			format.Height < 1 || format.Height > volumetric.MaxPictureSide {
			return "", format, fmt.Errorf("%q: the size is %q, expected WIDTHxHEIGHT, 1 to %d each", field, parts[1],
				volumetric.MaxPictureSide)
		}
	}
	if len(parts) > 2 {
		n, scanned := fmt.Sscanf(parts[2]+" ", "%g ", &format.FrameRate)
		if n != 1 || scanned != nil || !(format.FrameRate > 0 && format.FrameRate <= maxFrameRate) {
			return "", format, fmt.Errorf("%q: the frame rate is %q, expected a number up to %d", field, parts[2],
				maxFrameRate)
		}
	}
	return parts[0], format, nil
}
