package bridge

// lateWindow is the largest distance of a late frame from the newest frame of its stream. A larger distance means that
// the stream was restarted: at 100 frames per second, frames are repaired for less than half of the window.
const lateWindow = 64

// order distinguishes late frames from restarted streams.
type order struct {
	newest uint32
	begun  bool
}

// late reports whether a frame is not newer than the newest one.
func (o *order) late(number uint32) bool {
	behind := int32(o.newest - number)
	return o.begun && behind >= 0 && behind < lateWindow
}

// advance records a frame that is not late.
func (o *order) advance(number uint32) { o.newest, o.begun = number, true }
