package kinect

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/depth"
)

// Recording contains the frames of one camera that have both depth and colour.
type Recording struct {
	file   io.ReaderAt
	closer io.Closer
	path   string

	camera    depth.Camera
	alignment *depth.Alignment
	color     stream
	depth     stream
	frames    []shot
	interval  time.Duration
	serial    string
	// start is the device's time at time 0 of the file, if the device was synchronized with others
	// by wire.
	start        time.Duration
	synchronized bool

	workspaces sync.Pool // of *workspace, one per load in progress
}

// stream is a track of images.
type stream struct {
	track         uint64
	width, height int
	format        colorFormat
}

// shot is one frame.
type shot struct {
	at           time.Duration
	depth, color frame
}

// workspace is the memory of one load.
type workspace struct {
	data         []byte
	registration depth.Registration
}

// Open indexes a recording and gives its camera the name. Errors wrap ErrMatroska, ErrRecording or
// ErrCalibration and name the file.
func Open(name, path string) (*Recording, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil {
		var r *Recording
		if r, err = read(name, path, file, info.Size()); err == nil {
			r.closer = file
			return r, nil
		}
	}
	_ = file.Close()
	return nil, fmt.Errorf("%s: %w", path, err)
}

func read(name, path string, file io.ReaderAt, size int64) (*Recording, error) {
	m, err := readMatroska(file, size)
	if err != nil {
		return nil, err
	}
	r := &Recording{file: file, path: path, serial: m.tags["K4A_DEVICE_SERIAL_NUMBER"]}
	r.workspaces.New = func() any { return new(workspace) }
	if r.depth, err = findStream(m, "DEPTH", "b16g"); err != nil {
		return nil, err
	}
	if r.color, err = findStream(
		m,
		"COLOR",
		string(formatMJPG),
		string(formatNV12),
		string(formatYUY2),
		string(formatBGRA),
	); err != nil {
		return nil, err
	}
	data, ok := m.files[cmp.Or(m.tags["K4A_CALIBRATION_FILE"], "calibration.json")]
	if !ok {
		return nil, fmt.Errorf("%w: no calibration is attached to it", ErrRecording)
	}
	cameras, err := parseCalibration(data, [2]int{r.depth.width, r.depth.height}, [2]int{r.color.width, r.color.height})
	if err != nil {
		return nil, err
	}
	if err := r.pair(m); err != nil {
		return nil, err
	}
	r.camera = cameras.depth
	r.camera.Name = name
	r.alignment, err = depth.NewAlignment(cameras.depth, cameras.color, cameras.toColor)
	return r, err
}

// findStream returns a track of uncompressed video by its name.
func findStream(m *matroska, name string, formats ...string) (stream, error) {
	for _, t := range m.tracks {
		if t.name != name {
			continue
		}
		// A BITMAPINFOHEADER: its own size, width and height, and the format at offset 16, all
		// little-endian.
		if t.codec != "V_MS/VFW/FOURCC" || len(t.private) < 40 || t.encoded {
			return stream{}, fmt.Errorf(
				"%w: track %s is coded as %.40q, expected V_MS/VFW/FOURCC without compression by Matroska",
				ErrRecording,
				name,
				t.codec,
			)
		}
		width, height := binary.LittleEndian.Uint32(t.private[4:]), binary.LittleEndian.Uint32(t.private[8:])
		format := string(t.private[16:20])
		if !slices.Contains(formats, format) {
			return stream{}, fmt.Errorf(
				"%w: track %s has format %q, expected %s",
				ErrRecording,
				name,
				format,
				strings.Join(formats, " or "),
			)
		}
		if width == 0 || height == 0 || width > 4096 || height > 4096 {
			return stream{}, fmt.Errorf(
				"%w: track %s has %d × %d pixels, expected at most 4096 × 4096",
				ErrRecording,
				name,
				width,
				height,
			)
		}
		return stream{track: t.number, width: int(width), height: int(height), format: colorFormat(format)}, nil
	}
	return stream{}, fmt.Errorf("%w: it has no track %s", ErrRecording, name)
}

// defaultInterval is the frame interval of a camera at 30 frames per second.
const defaultInterval = time.Second / 30

// pair finds for each depth image the colour image captured with it: earlier by the depth delay,
// within half a frame interval.
func (r *Recording) pair(m *matroska) error {
	r.interval = defaultInterval
	for _, t := range m.tracks {
		if t.name == "DEPTH" && t.frameInterval >= 1e6 && t.frameInterval <= 1e10 {
			r.interval = time.Duration(t.frameInterval)
		}
	}
	delay, err := nanoseconds(m.tags, "K4A_DEPTH_DELAY_NS")
	if err != nil {
		return err
	}
	if r.start, err = nanoseconds(m.tags, "K4A_START_OFFSET_NS"); err != nil {
		return err
	}
	mode := m.tags["K4A_WIRED_SYNC_MODE"]
	r.synchronized = mode == "MASTER" || mode == "SUBORDINATE"
	depths, colors := m.blocks[r.depth.track], m.blocks[r.color.track]
	byTime := func(a, b frame) int { return cmp.Compare(a.at, b.at) }
	slices.SortStableFunc(depths, byTime)
	slices.SortStableFunc(colors, byTime)
	next := 0
	for _, d := range depths {
		if int(d.size) != 2*r.depth.width*r.depth.height {
			return fmt.Errorf(
				"%w: an image of depth has %d bytes, expected %d × %d × 2",
				ErrRecording,
				d.size,
				r.depth.width,
				r.depth.height,
			)
		}
		at := d.at - int64(delay)
		for next < len(colors) && colors[next].at < at-int64(r.interval)/2 {
			next++
		}
		if next < len(colors) && colors[next].at <= at+int64(r.interval)/2 {
			r.frames = append(r.frames, shot{at: time.Duration(d.at), depth: d, color: colors[next]})
			next++
		}
	}
	if len(r.frames) == 0 {
		return fmt.Errorf(
			"%w: %d images of depth and %d of colour, no two of the same time",
			ErrRecording,
			len(depths),
			len(colors),
		)
	}
	return nil
}

func nanoseconds(tags map[string]string, name string) (time.Duration, error) {
	text, ok := tags[name]
	if !ok {
		return 0, nil
	}
	ns, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ns > 1e15 || ns < -1e15 {
		return 0, fmt.Errorf("%w: tag %s is %.40q, expected nanoseconds", ErrRecording, name, text)
	}
	return time.Duration(ns), nil
}

// Camera returns the depth camera, to which the colours of its images are registered.
func (r *Recording) Camera() depth.Camera { return r.camera }

// Description returns text for people.
func (r *Recording) Description() string {
	return fmt.Sprintf(
		"%d frames of %dx%d from %s of Azure Kinect %s",
		len(r.frames),
		r.camera.Width,
		r.camera.Height,
		r.path,
		cmp.Or(r.serial, "without serial number"),
	)
}

// Len returns the number of frames.
func (r *Recording) Len() int { return len(r.frames) }

// FrameRate returns the configured frame rate of the camera, in frames per second.
func (r *Recording) FrameRate() float64 { return float64(time.Second) / float64(r.interval) }

// Time returns the capture time of a frame's depth image: by the common clock of devices
// synchronized by wire, otherwise since the start of the file.
func (r *Recording) Time(index int) time.Duration { return r.start + r.frames[index].at }

// Synchronized reports whether the device was synchronized with others by wire.
func (r *Recording) Synchronized() bool { return r.synchronized }

// LoadImage replaces the image by the image of one frame. The error names the file.
func (r *Recording) LoadImage(index int, into *depth.Image) error {
	w := r.workspaces.Get().(*workspace)
	defer r.workspaces.Put(w)
	if err := r.load(r.frames[index], w, into); err != nil {
		return fmt.Errorf("%s, frame %d: %w", r.path, index, err)
	}
	return nil
}

func (r *Recording) load(f shot, w *workspace, into *depth.Image) error {
	if err := w.read(r.file, f.depth); err != nil {
		return err
	}
	into.Depth, into.Labels = into.Depth[:0], into.Labels[:0]
	for i := 0; i+1 < len(w.data); i += 2 {
		into.Depth = append(into.Depth, binary.BigEndian.Uint16(w.data[i:]))
	}
	if err := w.read(r.file, f.color); err != nil {
		return err
	}
	picture, err := decodeColor(w.data, r.color.format, r.color.width, r.color.height)
	if err != nil {
		return err
	}
	r.alignment.Align(into, picture, &w.registration)
	return nil
}

func (w *workspace) read(file io.ReaderAt, f frame) error {
	w.data = slices.Grow(w.data[:0], int(f.size))[:f.size]
	if n, err := file.ReadAt(w.data, f.from); n < len(w.data) {
		return errors.Join(io.ErrUnexpectedEOF, err)
	}
	return nil
}

// Close closes the file. No load may be in progress.
func (r *Recording) Close() error {
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}
