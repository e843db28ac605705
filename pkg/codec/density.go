package codec

// FreePoints and PointsPerByte bound the memory and time that a short frame can cost a receiver.
// Coinciding points cost next to nothing in a frame, and as much as other points, up to 30 bytes
// each, when they are decoded. Scenes have 10 bits per point and more. An eighth of a bit per point
// is the result for 65,536 points if all coordinates have four bits.
const (
	FreePoints    = 1 << 16
	PointsPerByte = 64
)

// MaxPoints is the maximum number of points in a frame of any codec, for encoders and decoders:
// 4,194,304 points of 15 bytes are 63 MB. A frame of 16 MB, the default limit, has room for this
// number at 32 bits per point.
const MaxPoints = 4 << 20

// MostPoints returns the maximum number of points in a frame of the given size in bytes, for a
// codec whose frames have at most most points.
func MostPoints(bytes, most int) int { return min(most, FreePoints+PointsPerByte*bytes) }

// MissingBytes returns the number of bytes that a frame of the given size lacks to be permitted a
// number of points.
func MissingBytes(bytes, points int) int {
	return max(0, (points-FreePoints+PointsPerByte-1)/PointsPerByte-bytes)
}
