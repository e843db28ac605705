package rs2

// Stream is the kind of images of a profile or frame.
type Stream int32

// These are the streams of depth cameras used here.
const (
	Depth Stream = 1
	Color Stream = 2
)

// Format is the layout of pixels.
type Format int32

// These are formats of depth (16 bits, little endian) and of colours.
const (
	Z16   Format = 1
	RGB8  Format = 5
	BGR8  Format = 6
	RGBA8 Format = 7
	BGRA8 Format = 8
)

// Option is a setting of a sensor or processing block.
type Option int32

// These are the length of one unit of depth, and settings of the post-processing filters. The
// library's documentation lists their ranges.
const (
	depthUnits        Option = 28
	FilterMagnitude   Option = 36
	FilterSmoothAlpha Option = 37
	FilterSmoothDelta Option = 38
	HolesFill         Option = 39
)

// Info selects a piece of information about a device.
type Info int32

// These are the kinds of information used here.
const (
	Name         Info = 0
	SerialNumber Info = 1
)

// Domain is the clock of a timestamp.
type Domain int32

// These are the camera's own clock, the host's clock at arrival, and the camera's clock translated
// to the host's.
const (
	HardwareClock Domain = 0
	SystemTime    Domain = 1
	GlobalTime    Domain = 2
)

// Distortion is the model of a lens.
type Distortion int32

// These are the models of the library.
const (
	NoDistortion         Distortion = 0
	ModifiedBrownConrady Distortion = 1
	InverseBrownConrady  Distortion = 2
	FTheta               Distortion = 3
	BrownConrady         Distortion = 4
	KannalaBrandt4       Distortion = 5
)

// Intrinsics is the library's description of a lens, with the layout of C. Pixel centres are at
// whole numbers.
type Intrinsics struct {
	Width, Height int32
	PPX, PPY      float32 // principal point, in pixels
	FX, FY        float32 // focal lengths, in pixels
	Model         Distortion
	Coeffs        [5]float32
}

const playbackStopped = 3
