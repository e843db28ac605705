package dracojpeg

import "slices"

const (
	// squareEdge is the edge of a JPEG MCU with halved chroma, in pixels. squarePoints is the
	// number of its points.
	squareEdge   = 16
	squarePoints = squareEdge * squareEdge
	// mostSquares is the number of squares per row. With 16, an image of draco.MaxPoints points is
	// 16,384 pixels high, of at most 65,500 in libjpeg, and rows are long enough for its vector
	// code.
	mostSquares = 16
	// channels is the number of channels of a pixel: red, green, blue.
	channels = 3
)

// curve is the Hilbert curve through a square: the pixel of each point, as row × squareEdge +
// column.
var curve = func() (c [squarePoints]uint8) {
	for i := range c {
		x, y, left := 0, 0, i
		for edge := 1; edge < squareEdge; edge *= 2 {
			right := left >> 1 & 1
			up := (left ^ right) & 1
			if up == 0 {
				if right == 1 {
					x, y = edge-1-x, edge-1-y
				}
				x, y = y, x
			}
			x, y, left = x+edge*right, y+edge*up, left>>2
		}
		c[i] = uint8(y*squareEdge + x)
	}
	return c
}()

// layout maps points to pixels of the image.
type layout struct {
	points, width, height int
	// offsets contains the offsets of a square's points from its upper left corner, in bytes.
	offsets [squarePoints]int
}

func layoutOf(points int) layout {
	squares := (points + squarePoints - 1) / squarePoints
	across := min(squares, mostSquares)
	l := layout{points: points, width: across * squareEdge, height: (squares + across - 1) / across * squareEdge}
	for i, pixel := range curve {
		l.offsets[i] = channels * (int(pixel)/squareEdge*l.width + int(pixel)%squareEdge)
	}
	return l
}

// size returns the size of the image in bytes.
func (l *layout) size() int { return channels * l.width * l.height }

// corner returns the offset of the upper left pixel of a square, in bytes.
func (l *layout) corner(square int) int {
	across := l.width / squareEdge
	return channels * squareEdge * (square/across*l.width + square%across)
}

// paint writes the image: decoded point i has the colour colors[order[i]].
func (l *layout) paint(image []byte, colors [][3]uint8, order []uint32) []byte {
	image = slices.Grow(image[:0], l.size())[:l.size()]
	last := colors[order[len(order)-1]]
	for begin := 0; channels*begin < len(image); begin += squarePoints {
		square := image[l.corner(begin/squarePoints):]
		for i, offset := range l.offsets {
			color := last
			if begin+i < len(order) {
				color = colors[order[begin+i]]
			}
			pixel := square[offset : offset+channels]
			pixel[0], pixel[1], pixel[2] = color[0], color[1], color[2]
		}
	}
	return image
}

// read reads the points' colours from the image.
func (l *layout) read(colors [][3]uint8, image []byte) {
	for begin := 0; begin < l.points; begin += squarePoints {
		square := image[l.corner(begin/squarePoints):]
		part := colors[begin:min(begin+squarePoints, l.points)]
		for i := range part {
			part[i] = [3]uint8(square[l.offsets[i]:])
		}
	}
}
