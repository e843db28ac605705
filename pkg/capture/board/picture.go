package board

import "math"

// Gray is a grey picture, row by row from the upper left corner. Pixel centres are at whole numbers.
type Gray struct {
	Width, Height int
	Pixels        []float32
}

// NewGray returns a black picture.
func NewGray(width, height int) *Gray {
	return &Gray{Width: width, Height: height, Pixels: make([]float32, width*height)}
}

// at returns the brightness at a place inside of the picture, interpolated between pixels.
func (g *Gray) at(x, y float64) float64 {
	x, y = min(max(x, 0), float64(g.Width-1)), min(max(y, 0), float64(g.Height-1))
	u, v := min(int(x), g.Width-2), min(int(y), g.Height-2)
	fx, fy := x-float64(u), y-float64(v)
	row := g.Pixels[v*g.Width+u:]
	next := row[g.Width:]
	top := float64(row[0])*(1-fx) + float64(row[1])*fx
	bottom := float64(next[0])*(1-fx) + float64(next[1])*fx
	return top*(1-fy) + bottom*fy
}

// inside reports whether a place is at least margin pixels from the border.
func (g *Gray) inside(x, y, margin float64) bool {
	return x >= margin && y >= margin && x <= float64(g.Width-1)-margin && y <= float64(g.Height-1)-margin
}

// half returns the picture at half its size. Pixel x of the result covers pixels 2x and 2x+1.
func (g *Gray) half() *Gray {
	h := NewGray(g.Width/2, g.Height/2)
	for y := range h.Height {
		a := g.Pixels[2*y*g.Width:]
		b := a[g.Width:]
		for x := range h.Width {
			h.Pixels[y*h.Width+x] = (a[2*x] + a[2*x+1] + b[2*x] + b[2*x+1]) / 4
		}
	}
	return h
}

// smooth returns the picture, blurred by a Gaussian of a standard deviation in pixels.
func (g *Gray) smooth(sigma float64) *Gray {
	radius := int(math.Ceil(3 * sigma))
	weights := make([]float32, radius+1)
	sum := float32(0)
	for i := range weights {
		weights[i] = float32(math.Exp(-float64(i*i) / (2 * sigma * sigma)))
		sum += weights[i]
		if i > 0 {
			sum += weights[i]
		}
	}
	for i := range weights {
		weights[i] /= sum
	}
	across, down := NewGray(g.Width, g.Height), NewGray(g.Width, g.Height)
	for y := range g.Height {
		row, to := g.Pixels[y*g.Width:][:g.Width], across.Pixels[y*g.Width:][:g.Width]
		for x := range row {
			value := row[x] * weights[0]
			for i := 1; i <= radius; i++ {
				value += weights[i] * (row[max(x-i, 0)] + row[min(x+i, g.Width-1)])
			}
			to[x] = value
		}
	}
	for y := range g.Height {
		to := down.Pixels[y*g.Width:][:g.Width]
		for x, value := range across.Pixels[y*g.Width:][:g.Width] {
			to[x] = value * weights[0]
		}
		for i := 1; i <= radius; i++ {
			above := across.Pixels[max(y-i, 0)*g.Width:][:g.Width]
			below := across.Pixels[min(y+i, g.Height-1)*g.Width:][:g.Width]
			for x := range to {
				to[x] += weights[i] * (above[x] + below[x])
			}
		}
	}
	return down
}
