package visual

import (
	"errors"
	"fmt"
	"image"
	"math"
	"slices"
)

// ErrSize is returned if two pictures cannot be compared because their sizes differ or are too small.
var ErrSize = errors.New("pictures of different sizes")

// Plane is the luma of a picture by ITU-R BT.709, 16 to 235, row by row.
type Plane struct {
	Width, Height int
	Pixels        []uint8
}

// Luma sets the plane to a picture's luma. The plane's memory is reused if it is large enough.
func (p *Plane) Luma(picture *image.RGBA) {
	p.Width, p.Height = picture.Rect.Dx(), picture.Rect.Dy()
	if size := p.Width * p.Height; cap(p.Pixels) < size {
		p.Pixels = make([]uint8, size)
	}
	p.Pixels = p.Pixels[:p.Width*p.Height]
	for y := range p.Height {
		row := picture.Pix[y*picture.Stride:]
		line := p.Pixels[y*p.Width:][:p.Width]
		for x := range line {
			line[x] = luma(row[4*x], row[4*x+1], row[4*x+2])
		}
	}
}

// luma returns the luma of one pixel: the weights of BT.709 times 219/255, in 65536ths, plus 16 for black.
func luma(r, g, b uint8) uint8 {
	return uint8((11966*uint32(r) + 40254*uint32(g) + 4064*uint32(b) + 16<<16 + 1<<15) >> 16)
}

// comparable returns an error if two planes cannot be compared.
func comparable(a, b *Plane) error {
	if a.Width != b.Width || a.Height != b.Height || a.Width < window || a.Height < window {
		return fmt.Errorf("%w: %dx%d and %dx%d, expected one size of at least %dx%d", ErrSize, a.Width, a.Height,
			b.Width, b.Height, window, window)
	}
	return nil
}

// BestPSNR is the PSNR of equal pictures, in dB. The true value is infinite, which neither means nor JSON can
// represent.
const BestPSNR = 100

// PSNR returns the peak signal-to-noise ratio of a picture's luma in dB: 10·lg(255²/mean squared error), at most
// BestPSNR.
func PSNR(reference, shown *Plane) (float64, error) {
	if err := comparable(reference, shown); err != nil {
		return 0, err
	}
	sum := uint64(0)
	for i, want := range reference.Pixels {
		d := int64(want) - int64(shown.Pixels[i])
		sum += uint64(d * d)
	}
	if sum == 0 {
		return BestPSNR, nil
	}
	mean := float64(sum) / float64(len(reference.Pixels))
	return min(10*math.Log10(255*255/mean), BestPSNR), nil
}

const (
	// window is the edge of the squares that SSIM compares and stride the distance of two squares. Both are the values
	// of x264 and FFmpeg.
	window, stride = 8, 4
	// The constants of SSIM (Wang et al., IEEE Transactions on Image Processing 13(4), 2004): (0.01·255)² and
	// (0.03·255)².
	c1, c2 = 6.5025, 58.5225
)

// SSIM returns the structural similarity of a picture's luma, 1 for equal pictures: the unweighted mean over
// overlapping squares of 8 by 8 pixels, every 4 pixels.
func SSIM(reference, shown *Plane) (float64, error) {
	if err := comparable(reference, shown); err != nil {
		return 0, err
	}
	sum, count := 0.0, 0
	for y := 0; y+window <= reference.Height; y += stride {
		for x := 0; x+window <= reference.Width; x += stride {
			sum += similarity(reference, shown, x, y)
			count++
		}
	}
	return sum / float64(count), nil
}

// Within returns PSNR and SSIM of a part of a picture's luma, whose pixels are true in inside. Pixels outside have to
// be equal in both planes. The PSNR is that of the pixels inside, and the SSIM is the mean over the squares that
// contain a pixel inside.
func Within(reference, shown *Plane, inside []bool) (psnr, ssim float64, err error) {
	if err := comparable(reference, shown); err != nil {
		return 0, 0, err
	}
	squares, pixels := 0.0, 0
	for i, is := range inside {
		if is {
			d := float64(reference.Pixels[i]) - float64(shown.Pixels[i])
			squares += d * d
			pixels++
		}
	}
	if pixels == 0 {
		return 0, 0, fmt.Errorf("%w: no pixel inside, expected one at least", ErrSize)
	}
	psnr = BestPSNR
	if squares > 0 {
		psnr = min(10*math.Log10(255*255*float64(pixels)/squares), BestPSNR)
	}
	sum, count := 0.0, 0
	for y := 0; y+window <= reference.Height; y += stride {
		for x := 0; x+window <= reference.Width; x += stride {
			if touches(inside, reference.Width, x, y) {
				sum += similarity(reference, shown, x, y)
				count++
			}
		}
	}
	return psnr, sum / float64(max(count, 1)), nil
}

// touches reports whether a square contains a pixel inside.
func touches(inside []bool, width, left, top int) bool {
	for y := top; y < top+window; y++ {
		if slices.Contains(inside[y*width+left:][:window], true) {
			return true
		}
	}
	return false
}

// similarity returns the SSIM of one square.
func similarity(a, b *Plane, left, top int) float64 {
	var sumA, sumB, squares, product uint32
	for y := top; y < top+window; y++ {
		rowA, rowB := a.Pixels[y*a.Width+left:][:window], b.Pixels[y*b.Width+left:][:window]
		for i, va := range rowA {
			u, v := uint32(va), uint32(rowB[i])
			sumA += u
			sumB += v
			squares += u*u + v*v
			product += u * v
		}
	}
	const n = window * window
	meanA, meanB := float64(sumA)/n, float64(sumB)/n
	// Variances and covariance are sample statistics, with n-1.
	variances := (float64(squares) - n*(meanA*meanA+meanB*meanB)) / (n - 1)
	covariance := (float64(product) - n*meanA*meanB) / (n - 1)
	return (2*meanA*meanB + c1) * (2*covariance + c2) / ((meanA*meanA + meanB*meanB + c1) * (variances + c2))
}
