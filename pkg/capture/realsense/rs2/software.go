package rs2

import (
	"fmt"
	"strings"
	"unsafe"
)

// softwareSymbols are the additional functions for a software camera. Making such a camera resolves
// the functions, so that a library without these functions can still play and capture.
type softwareSymbols struct {
	CreateDevice func(failed *uintptr) uintptr `c:"rs2_create_software_device"`
	AddSensor    func(device uintptr, name string,
		failed *uintptr) uintptr `c:"rs2_software_device_add_sensor"`
	AddVideoStream func(sensor uintptr, stream videoStream,
		failed *uintptr) uintptr `c:"rs2_software_sensor_add_video_stream"`
	AddReadOnlyOption func(sensor uintptr, option int32, value float32,
		failed *uintptr) `c:"rs2_software_sensor_add_read_only_option"`
	RegisterInfo func(device uintptr, info int32, value string,
		failed *uintptr) `c:"rs2_software_device_register_info"`
	DeviceOf func(sensor uintptr,
		failed *uintptr) uintptr `c:"rs2_create_device_from_sensor"`
	CreateMatcher func(device uintptr, matcher int32,
		failed *uintptr) `c:"rs2_software_device_create_matcher"`
	RegisterExtrinsics func(from, to uintptr, extrinsics Extrinsics, failed *uintptr) `c:"rs2_register_extrinsics"`
	OnVideoFrame       func(sensor uintptr, frame videoFrame,
		failed *uintptr) `c:"rs2_software_sensor_on_video_frame"`
	Malloc func(size uintptr) uintptr `c:"malloc"`
	Free   uintptr                    `c:"free"`
}

// Extrinsics is the pose of one stream's camera relative to another's, with the layout of C:
// rotation by columns, translation in metres, x right, y down, z forward.
type Extrinsics struct {
	Rotation    [9]float32
	Translation [3]float32
}

// videoStream is rs2_video_stream.
type videoStream struct {
	Stream, Index, ID, Width, Height, FPS, BytesPerPixel, Format int32
	Intrinsics                                                   Intrinsics
}

// videoFrame is rs2_software_video_frame. Older libraries ignore the last member.
type videoFrame struct {
	Pixels, Deleter       uintptr
	Stride, BytesPerPixel int32
	Timestamp             float64
	Domain, Number        int32
	Profile               uintptr
	DepthUnits            float32
}

// SoftwareCamera is a depth camera with images from the program. The library treats it like a
// connected camera.
type SoftwareCamera struct {
	library      *Library
	symbols      softwareSymbols
	depth, color softwareStream
	unit         float32
}

type softwareStream struct {
	sensor, profile uintptr
	stride, pixel   int // bytes
}

// SoftwareSettings describes a software camera.
type SoftwareSettings struct {
	Serial       string
	FPS          int
	Depth, Color Intrinsics
	DepthUnit    float64    // metres
	ToColor      Extrinsics // from the coordinates of the depth camera to the coordinates of the colour camera
}

// matcherDefault makes the synchroniser use timestamps.
const matcherDefault = 6

// NewSoftwareCamera makes a camera with images in Z16 and RGB8.
func (l *Library) NewSoftwareCamera(s SoftwareSettings) (*SoftwareCamera, error) {
	c := &SoftwareCamera{library: l, unit: float32(s.DepthUnit)}
	if missing := c.symbols.find(l.handle); len(missing) > 0 {
		return nil, fmt.Errorf("%w: %s is %v and lacks %s", ErrVersion, l.path, l.version, strings.Join(missing, ", "))
	}
	var failed uintptr
	handle := c.symbols.CreateDevice(&failed)
	if err := l.failure(failed); err != nil {
		return nil, err
	}
	device := &Device{l, handle}
	defer device.Close() // its sensors keep it alive
	if err := c.furnish(device, s); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Device opens the camera as a program would. Several devices may be open and may outlive the
// camera.
func (c *SoftwareCamera) Device() (*Device, error) {
	var failed uintptr
	handle := c.symbols.DeviceOf(c.depth.sensor, &failed)
	if err := c.library.failure(failed); err != nil {
		return nil, err
	}
	return &Device{c.library, handle}, nil
}

// Close frees the camera. Later images are dropped.
func (c *SoftwareCamera) Close() {
	for _, s := range []softwareStream{c.depth, c.color} {
		if s.sensor != 0 {
			c.library.symbols.DeleteSensor(s.sensor)
		}
	}
}

func (c *SoftwareCamera) furnish(device *Device, s SoftwareSettings) error {
	var failed uintptr
	for info, value := range map[Info]string{Name: "Camera in software", SerialNumber: s.Serial} {
		c.symbols.RegisterInfo(device.handle, int32(info), value, &failed)
		if err := c.library.failure(failed); err != nil {
			return err
		}
	}
	var err error
	if c.depth, err = c.addStream(device, "Stereo Module", Depth, Z16, 2, s.Depth, s.FPS); err != nil {
		return err
	}
	if c.color, err = c.addStream(device, "RGB Camera", Color, RGB8, 3, s.Color, s.FPS); err != nil {
		return err
	}
	c.symbols.AddReadOnlyOption(c.depth.sensor, int32(depthUnits), c.unit, &failed)
	if err := c.library.failure(failed); err != nil {
		return err
	}

	c.symbols.RegisterExtrinsics(c.depth.profile, c.color.profile, s.ToColor, &failed)
	if err := c.library.failure(failed); err != nil {
		return err
	}
	c.symbols.CreateMatcher(device.handle, matcherDefault, &failed)
	return c.library.failure(failed)
}

func (c *SoftwareCamera) addStream(
	device *Device,
	name string,
	stream Stream,
	format Format,
	pixel int,
	lens Intrinsics,
	fps int,
) (softwareStream, error) {
	var failed uintptr
	sensor := c.symbols.AddSensor(device.handle, name, &failed)
	if err := c.library.failure(failed); err != nil {
		return softwareStream{}, err
	}
	made := softwareStream{sensor: sensor, stride: int(lens.Width) * pixel, pixel: pixel}
	made.profile = c.symbols.AddVideoStream(sensor, videoStream{
		Stream: int32(stream), ID: int32(stream), Width: lens.Width, Height: lens.Height, FPS: int32(fps),
		BytesPerPixel: int32(pixel), Format: int32(format), Intrinsics: lens,
	}, &failed)
	return made, c.library.failure(failed)
}

// Show delivers the images of one instant to the started sensors of the camera; without such
// sensors they are dropped. The timestamp is in milliseconds of the domain's clock.
func (c *SoftwareCamera) Show(number int, timestamp float64, domain Domain, depth []uint16, color [][3]uint8) error {
	if err := show(c, c.depth, number, timestamp, domain, depth); err != nil {
		return err
	}
	return show(c, c.color, number, timestamp, domain, color)
}

func show[T any](c *SoftwareCamera, s softwareStream, number int, timestamp float64, domain Domain, pixels []T) error {
	size := len(pixels) * int(unsafe.Sizeof(pixels[0]))
	// The library frees the memory after the last release of the frame.
	copied := c.symbols.Malloc(uintptr(size))
	copy(memory[T](copied, len(pixels)), pixels)
	var failed uintptr
	c.symbols.OnVideoFrame(s.sensor, videoFrame{
		Pixels: copied, Deleter: c.symbols.Free, Stride: int32(s.stride), BytesPerPixel: int32(s.pixel),
		Timestamp: timestamp, Domain: int32(domain), Number: int32(number), Profile: s.profile, DepthUnits: c.unit,
	}, &failed)
	return c.library.failure(failed)
}
