// Package board finds a calibration board in pictures. The board is a chessboard with dots: every square has a dot of
// the other colour in its middle, or none. The corners of the squares are measured to a few hundredths of a pixel; the
// dots identify them, so that a part of the board is enough and a turned board is recognised.
//
// Coordinates of a board have the axes of pictures: x to the right along its rows, y down along its columns, z into the
// board. The origin is the middle of the board.
//
// A Board is immutable. A Detector belongs to one goroutine.
package board

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
)

// ErrBoard reports an invalid board.
var ErrBoard = errors.New("invalid calibration board")

// Limits of a board. A board of fewer squares is not recognised if a part of it is hidden, and the search for the dots
// takes longer the more squares there are.
const (
	minSquares = 5
	maxSquares = 20
	minSquare  = 0.005 // metres
	maxSquare  = 1
)

// Board is a chessboard with dots. The upper left square is black.
type Board struct {
	// Columns and Rows are the numbers of squares.
	Columns, Rows int
	// Square is the edge of a square in metres.
	Square float64
	dots   []bool // by square, row by row
}

// New returns the board of a size. Boards of the same numbers of squares have the same dots.
func New(columns, rows int, square float64) (Board, error) {
	switch {
	case columns < minSquares || rows < minSquares || columns > maxSquares || rows > maxSquares:
		return Board{}, fmt.Errorf("%w: %d × %d squares, expected %d to %d in each direction", ErrBoard, columns, rows,
			minSquares, maxSquares)
	case !(square >= minSquare && square <= maxSquare):
		return Board{}, fmt.Errorf("%w: squares of %g m, expected %g to %g m", ErrBoard, square, minSquare,
			float64(maxSquare))
	}
	b := Board{Columns: columns, Rows: rows, Square: square}
	// Of some random patterns the one is taken whose parts differ most from each other, in all turns.
	const patterns = 64
	best := -1
	for seed := range uint64(patterns) {
		random := rand.New(rand.NewPCG(seed, uint64(columns<<8|rows)))
		dots := make([]bool, columns*rows)
		for i := range dots {
			dots[i] = random.Uint64()&1 == 1
		}
		candidate := Board{Columns: columns, Rows: rows, Square: square, dots: dots}
		if distance := candidate.distance(); distance > best {
			best, b = distance, candidate
		}
	}
	return b, nil
}

// Corners returns the number of corners between squares.
func (b Board) Corners() int { return (b.Columns - 1) * (b.Rows - 1) }

// At returns the place of a corner between squares on the board, in metres. The first corner is between the first and
// the second square of the first and the second row.
func (b Board) At(column, row int) [3]float64 {
	return [3]float64{
		(float64(column+1) - float64(b.Columns)/2) * b.Square,
		(float64(row+1) - float64(b.Rows)/2) * b.Square,
		0,
	}
}

// white reports the colour of a square, dot reports whether the square has a dot.
func (b Board) white(column, row int) bool { return (column+row)&1 == 1 }
func (b Board) dot(column, row int) bool   { return b.dots[row*b.Columns+column] }

// dotRadius is the radius of a dot in squares. In a square with an edge of 12 pixels a dot has a diameter of 5 pixels,
// and remains visible with some blur; the corners are at least 0.48 squares away from the dot.
const dotRadius = 0.22

// White reports the colour at a place of the board, in metres from its middle: the squares, their dots, and a white
// margin of half a square around them, beyond which there is no board.
func (b Board) White(x, y float64) (white, inside bool) {
	u, v := x/b.Square+float64(b.Columns)/2, y/b.Square+float64(b.Rows)/2
	const margin = 0.5
	if u < -margin || v < -margin || u > float64(b.Columns)+margin || v > float64(b.Rows)+margin {
		return false, false
	}
	column, row := int(math.Floor(u)), int(math.Floor(v))
	if column < 0 || row < 0 || column >= b.Columns || row >= b.Rows {
		return true, true
	}
	inDot := b.dot(column, row) && math.Hypot(u-float64(column)-0.5, v-float64(row)-0.5) < dotRadius
	return b.white(column, row) != inDot, true
}

// window is the edge of the parts of a board that differ from each other, in squares.
const window = 4

// distance returns the least number of dots by which two parts of window × window squares differ, over all places and
// turns at which the colours of their squares agree.
func (b Board) distance() int {
	type part struct {
		dots  uint16
		white bool
	}
	var parts []part
	for row := range b.Rows - window + 1 {
		for column := range b.Columns - window + 1 {
			for turn := range 4 {
				var p part
				for y := range window {
					for x := range window {
						u, v := x, y
						for range turn {
							u, v = window-1-v, u
						}
						if x == 0 && y == 0 {
							p.white = b.white(column+u, row+v)
						}
						if b.dot(column+u, row+v) {
							p.dots |= 1 << (y*window + x)
						}
					}
				}
				parts = append(parts, p)
			}
		}
	}
	least := window * window
	for i, p := range parts {
		for _, q := range parts[:i] {
			if p.white == q.white {
				least = min(least, bits.OnesCount16(p.dots^q.dots))
			}
		}
	}
	return least
}
