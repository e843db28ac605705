package bridge

// lateWindow is how far behind the newest frame of a stream one may come and be late. What is farther behind is of a
// stream that began anew: at 100 frames per second a frame is repaired for less than half as long.
const lateWindow = 64

// order tells frames that come late from streams that begin anew.
type order struct {
	newest uint32
	begun  bool
}

// late tells whether a frame is no newer than the newest.
func (o *order) late(number uint32) bool {
	behind := int32(o.newest - number)
	return o.begun && behind >= 0 && behind < lateWindow
}

// advance takes a frame that is not late.
func (o *order) advance(number uint32) { o.newest, o.begun = number, true }
