package render

import (
	"image"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// The size of pictures that Screens draw, in pixels.
const (
	Width  = 1280
	Height = 720
)

const (
	// near is the distance in metres below which points are not drawn, because they would cover the picture.
	near = 0.05
	// bandRows is the number of rows that one worker draws at a time: 45 rows of 1,280 pixels are 460 kB, which fit a
	// core's own cache.
	bandRows = 45
	// maxSize bounds the drawn size of a point in pixels. Only points very close to the viewer reach it.
	maxSize = 48
	// background is dark grey, so that black clothes are visible.
	background = 0x202428
	// blank is an empty pixel: farther away than every point.
	blank = math.MaxUint32<<32 | background
)

// Layer is one cloud of a picture.
type Layer struct {
	Cloud *pointcloud.Cloud
	Place Place
}

// Rasteriser draws points as squares whose size decreases with the distance, the nearest point in front.
//
// It draws in three rounds, each shared by all workers: the width of each cloud's points; the position and the bands of
// each point; and the bands.
type Rasteriser struct {
	width, height int
	// pixels have the depth in the upper half, as the bits of a positive float32, and the colour in the lower half. The
	// smallest word is in front.
	pixels []uint64

	view    View
	layers  []Layer
	cameras []camera
	widths  []float32
	points  int
	workers []worker

	next    atomic.Int64
	round   sync.WaitGroup
	running sync.WaitGroup
}

// worker is the state of one core. bands has the marks that the worker found in each band.
type worker struct {
	tasks chan func(*Rasteriser, *worker)
	index int
	gauge gauge
	bands [][]mark
}

// mark is one point in the picture: the pixels from left and top up to, but not including, right and bottom.
type mark struct {
	left, top, right, bottom int16
	word                     uint64
}

// NewRasteriser returns a rasteriser for pictures of a size, width and height from 1 to 16,384 pixels. workers is the
// number of workers, 0 for one per core. Close ends them.
func NewRasteriser(width, height, workers int) *Rasteriser {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	r := &Rasteriser{width: width, height: height, pixels: make([]uint64, width*height),
		workers: make([]worker, workers)}
	for i := range r.workers {
		w := &r.workers[i]
		w.tasks, w.index = make(chan func(*Rasteriser, *worker)), i
		w.bands = make([][]mark, (height+bandRows-1)/bandRows)
		r.running.Go(func() {
			for task := range w.tasks {
				task(r, w)
				r.round.Done()
			}
		})
	}
	return r
}

// Close ends the workers.
func (r *Rasteriser) Close() {
	for i := range r.workers {
		close(r.workers[i].tasks)
	}
	r.running.Wait()
}

// Draw draws a picture of the layers. The layers are not modified and not kept.
func (r *Rasteriser) Draw(view View, layers []Layer) {
	r.view, r.layers, r.points = view, layers, 0
	r.cameras, r.widths = r.cameras[:0], r.widths[:0]
	for _, l := range layers {
		r.cameras = append(r.cameras, cameraOf(view, l.Place, r.height))
		r.widths = append(r.widths, 0)
		r.points += l.Cloud.Len()
	}
	r.share((*Rasteriser).measure)
	r.share((*Rasteriser).project)
	r.share((*Rasteriser).paint)
	r.layers = nil
}

// share runs a round on all workers.
func (r *Rasteriser) share(task func(*Rasteriser, *worker)) {
	r.next.Store(0)
	r.round.Add(len(r.workers))
	for i := range r.workers {
		r.workers[i].tasks <- task
	}
	r.round.Wait()
}

// measure computes the width of points, cloud by cloud.
func (r *Rasteriser) measure(w *worker) {
	for i := r.next.Add(1) - 1; i < int64(len(r.layers)); i = r.next.Add(1) - 1 {
		r.widths[i] = w.gauge.width(r.layers[i].Cloud)
	}
}

// project projects the points of a worker's share: equal parts of all points, in order.
func (r *Rasteriser) project(w *worker) {
	for i := range w.bands {
		w.bands[i] = w.bands[i][:0]
	}
	begin := r.points * w.index / len(r.workers)
	end := r.points * (w.index + 1) / len(r.workers)
	for i := range r.layers {
		n := r.layers[i].Cloud.Len()
		if from, to := max(begin, 0), min(end, n); from < to {
			r.projectSome(w, i, from, to)
		}
		begin, end = begin-n, end-n
	}
}

// projectSome projects the points from up to, but not including, to of a layer.
func (r *Rasteriser) projectSome(w *worker, layer, from, to int) {
	cloud, c := r.layers[layer].Cloud, r.cameras[layer]
	size := r.widths[layer] * c.grown * c.focal
	middleX, middleY := float32(r.width)/2, float32(r.height)/2
	for i := from; i < to; i++ {
		p := cloud.Positions[i]
		z := c.rows[2][0]*p[0] + c.rows[2][1]*p[1] + c.rows[2][2]*p[2] + c.rows[2][3]
		if !(z >= near && z <= math.MaxFloat32) {
			continue
		}
		x := c.rows[0][0]*p[0] + c.rows[0][1]*p[1] + c.rows[0][2]*p[2] + c.rows[0][3]
		y := c.rows[1][0]*p[0] + c.rows[1][1]*p[1] + c.rows[1][2]*p[2] + c.rows[1][3]
		inverse := 1 / z
		side := min(max(size*inverse, 1), maxSize)
		// The square is centred at the projected point; 0.5 rounds to the nearest pixel.
		left := middleX + x*c.focal*inverse - side/2 + 0.5
		top := middleY - y*c.focal*inverse - side/2 + 0.5
		if !(left > -maxSize && left < float32(r.width) && top > -maxSize && top < float32(r.height)) {
			continue
		}
		var color [3]uint8
		if i < len(cloud.Colors) {
			color = cloud.Colors[i]
		}
		w.put(mark{
			left: int16(max(floor(left), 0)), top: int16(max(floor(top), 0)),
			right: int16(min(floor(left+side), r.width)), bottom: int16(min(floor(top+side), r.height)),
			word: uint64(math.Float32bits(z))<<32 | uint64(color[0])<<16 | uint64(color[1])<<8 | uint64(color[2]),
		})
	}
}

// floor rounds down values above -maxSize. A conversion to int would round negative values up.
func floor(v float32) int { return int(v+maxSize) - maxSize }

// put adds a mark to the bands that the mark overlaps.
func (w *worker) put(m mark) {
	if m.right <= m.left || m.bottom <= m.top {
		return
	}
	for band := int(m.top) / bandRows; band <= int(m.bottom-1)/bandRows; band++ {
		w.bands[band] = append(w.bands[band], m)
	}
}

// paint draws band by band.
func (r *Rasteriser) paint(*worker) {
	bands := int64(len(r.workers[0].bands))
	for band := r.next.Add(1) - 1; band < bands; band = r.next.Add(1) - 1 {
		first := int(band) * bandRows
		last := min(first+bandRows, r.height)
		rows := r.pixels[first*r.width : last*r.width]
		for i := range rows {
			rows[i] = blank
		}
		for i := range r.workers {
			r.paintMarks(r.workers[i].bands[band], rows, first, last)
		}
	}
}

// paintMarks draws the part of the marks in the rows from first up to, but not including, last.
func (r *Rasteriser) paintMarks(marks []mark, rows []uint64, first, last int) {
	for _, m := range marks {
		top, bottom := max(int(m.top), first), min(int(m.bottom), last)
		for y := top; y < bottom; y++ {
			begin := (y - first) * r.width
			row := rows[begin+int(m.left) : begin+int(m.right)]
			for x := range row {
				if m.word < row[x] {
					row[x] = m.word
				}
			}
		}
	}
}

// Image copies the picture into an image of the same size. If into is nil or has another size, a new image is returned.
func (r *Rasteriser) Image(into *image.RGBA) *image.RGBA {
	bounds := image.Rect(0, 0, r.width, r.height)
	if into == nil || into.Rect != bounds {
		into = image.NewRGBA(bounds)
	}
	for i, word := range r.pixels {
		into.Pix[4*i], into.Pix[4*i+1], into.Pix[4*i+2], into.Pix[4*i+3] = uint8(word>>16), uint8(word>>8), uint8(word),
			0xff
	}
	return into
}
