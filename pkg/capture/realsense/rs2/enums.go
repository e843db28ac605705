package rs2

// Stream is what a profile or frame shows.
type Stream int32

// The streams of depth cameras that matter here.
const (
	Depth Stream = 1
	Color Stream = 2
)

// Format is how pixels are laid out.
type Format int32

// Formats of depth (16 bits, little endian) and of colours.
const (
	Z16   Format = 1
	RGB8  Format = 5
	BGR8  Format = 6
	RGBA8 Format = 7
	BGRA8 Format = 8
)

// Option is a setting of a sensor or processing block.
type Option int32

// The length of one unit of depth, and settings of the post-processing filters, whose ranges the library's documentation tells.
const (
	depthUnits        Option = 28
	FilterMagnitude   Option = 36
	FilterSmoothAlpha Option = 37
	FilterSmoothDelta Option = 38
	HolesFill         Option = 39
)

// Info is what a device tells about itself.
type Info int32

// What is asked for.
const (
	Name         Info = 0
	SerialNumber Info = 1
)

// Domain is the clock of a timestamp.
type Domain int32

// The camera's own clock, the host's clock at arrival, and the camera's clock translated to the host's.
const (
	HardwareClock Domain = 0
	SystemTime    Domain = 1
	GlobalTime    Domain = 2
)

// Distortion is the model of a lens.
type Distortion int32

// The models that the library knows.
const (
	NoDistortion         Distortion = 0
	ModifiedBrownConrady Distortion = 1
	InverseBrownConrady  Distortion = 2
	FTheta               Distortion = 3
	BrownConrady         Distortion = 4
	KannalaBrandt4       Distortion = 5
)

// Intrinsics are the library's description of a lens, laid out as in C. Pixel centres are at whole numbers.
type Intrinsics struct {
	Width, Height int32
	PPX, PPY      float32 // principal point, in pixels
	FX, FY        float32 // focal lengths, in pixels
	Model         Distortion
	Coeffs        [5]float32
}

const playbackStopped = 3
