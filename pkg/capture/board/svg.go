package board

import (
	"bufio"
	"fmt"
	"io"
)

// WriteSVG writes the board as an SVG image of its true size, with a white margin of half a square.
func (b Board) WriteSVG(w io.Writer) error {
	out := bufio.NewWriter(w)
	square := 1000 * b.Square // millimetres
	width, height := float64(b.Columns+1)*square, float64(b.Rows+1)*square
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%gmm" height="%gmm" `, width, height)
	fmt.Fprintf(out, `viewBox="-0.5 -0.5 %d %d">`+"\n", b.Columns+1, b.Rows+1)
	fmt.Fprintf(out, `<title>Board of %d by %d squares of %g mm</title>`+"\n", b.Columns, b.Rows, square)
	fmt.Fprintf(out, `<rect x="-0.5" y="-0.5" width="%d" height="%d" fill="white"/>`+"\n", b.Columns+1, b.Rows+1)
	for row := range b.Rows {
		for column := range b.Columns {
			dot := "white"
			if b.white(column, row) {
				dot = "black"
			} else {
				fmt.Fprintf(out, `<rect x="%d" y="%d" width="1" height="1"/>`+"\n", column, row)
			}
			if b.dot(column, row) {
				fmt.Fprintf(out, `<circle cx="%g" cy="%g" r="%g" fill="%s"/>`+"\n", float64(column)+0.5,
					float64(row)+0.5, dotRadius, dot)
			}
		}
	}
	fmt.Fprintln(out, "</svg>")
	return out.Flush()
}
