package codec

// FreePoints and PointsPerByte bound what a frame of few bytes can make a receiver keep and
// compute: points that coincide cost next to nothing in a frame, and as much as others, up to 30
// bytes each, once they are decoded. Scenes have 10 bits per point and more; an eighth of a bit is
// what is left of 65,536 points where all coordinates have four bits.
const (
	FreePoints    = 1 << 16
	PointsPerByte = 64
)

// MaxPoints is the largest number of points in a frame, of whatever codec, for encoders and decoders alike: 4,194,304
// points of 15 bytes are 63 MB. It is what 16 MB, the default limit of a frame, hold at 32 bits per point.
const MaxPoints = 4 << 20

// MostPoints is how many points a frame of so many bytes may have, of a codec whose frames have so many at most.
func MostPoints(bytes, most int) int { return min(most, FreePoints+PointsPerByte*bytes) }
