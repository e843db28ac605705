package render

import (
	"image"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// The size of pictures that Screens draw: the window of the usual viewer.
const (
	Width  = 1280
	Height = 720
)

const (
	// near is the distance in metres below which points are not drawn: they would fill the picture.
	near = 0.05
	// bandRows is how many rows one worker draws at a time: 45 rows of 1,280 pixels are 460 kB, which fit into a core's
	// own cache.
	bandRows = 45
	// maxSize bounds a point's size in pixels: what is so large is too near to be looked at.
	maxSize = 48
	// background is dark grey, so that black clothes show.
	background = 0x202428
	// blank is a pixel that nothing was drawn on: farther away than every point.
	blank = math.MaxUint32<<32 | background
)

// Layer is one cloud of a picture.
type Layer struct {
	Cloud *pointcloud.Cloud
	Place Place
}

// Rasteriser draws points as squares that are as large as they are near, the nearest in front.
//
// It draws in three rounds, each shared by all workers: how wide each cloud's points are, where each point is and in
// which bands of the picture, and the bands.
type Rasteriser struct {
	width, height int
	// pixels have the depth, as the bits of a positive float32, in the high half, and the colour in the low one: the
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

// worker is the share of one core. bands are what it found to draw in each band.
type worker struct {
	tasks chan func(*Rasteriser, *worker)
	index int
	gauge gauge
	bands [][]mark
}

// mark is one point in the picture: the pixels from left and top to before right and bottom.
type mark struct {
	left, top, right, bottom int16
	word                     uint64
}

// NewRasteriser makes one for pictures of a size, both of 1 to 16,384 pixels, with so many workers (0: one per core).
// Close ends them.
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

// Draw draws a picture of the layers. They are only read, and not kept.
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

// share lets all workers do their part of a round.
func (r *Rasteriser) share(task func(*Rasteriser, *worker)) {
	r.next.Store(0)
	r.round.Add(len(r.workers))
	for i := range r.workers {
		r.workers[i].tasks <- task
	}
	r.round.Wait()
}

// measure finds the width of points, cloud by cloud.
func (r *Rasteriser) measure(w *worker) {
	for i := r.next.Add(1) - 1; i < int64(len(r.layers)); i = r.next.Add(1) - 1 {
		r.widths[i] = w.gauge.width(r.layers[i].Cloud)
	}
}

// project finds where the points of a worker's share are: equal parts of all points, in their order.
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

// projectSome finds the points from and to before to of a layer.
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
		// Half of the side before the middle; 0.5 rounds.
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

// floor rounds down what is above -maxSize, as int cannot below 0.
func floor(v float32) int { return int(v+maxSize) - maxSize }

// put notes a mark in the bands that it touches.
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

// paintMarks draws marks as far as they are in the rows from first to before last.
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

// Image copies the picture into an image of its size; one of another size, or nil, is replaced by a new one.
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
