package depth

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Options configure the conversion of a camera's images to points.
type Options struct {
	Background Background
	Cleaning   Cleaning
	// Source is stored in Cloud.Sources of every point, with one bit for the camera; 0 leaves
	// Sources unchanged.
	Source uint16
	// Threads is the number of processors for one image; 0 means all.
	Threads int
}

// DefaultOptions returns options that keep every surface.
func DefaultOptions() Options { return Options{Cleaning: DefaultCleaning()} }

// Projector converts the images of one camera to points. A Projector belongs to one goroutine.
type Projector struct {
	optics  *optics
	source  uint16
	scene   *scene // nil unless a background is being learnt
	threads []func()
	done    sync.WaitGroup

	// near is the image after removal of the background, with a border of zeros, so that every
	// pixel has 8 neighbours. object is the image after cleaning.
	near, object []uint16
	surfaces     surfaces

	// State of the current image.
	image  *Image
	into   *pointcloud.Cloud
	stage  func(thread int)
	starts []int // index of each thread's first point in the cloud

	remove, clean, place func(thread int) // stages, bound once, because binding a method allocates memory
}

// NewProjector returns a projector. If the background has a scene, it is read immediately.
//
// Errors wrap ErrCamera, ErrBackground or ErrCleaning.
func NewProjector(camera Camera, options Options) (*Projector, error) {
	if err := camera.Validate(); err != nil {
		return nil, err
	}
	if err := options.Background.validate(); err != nil {
		return nil, err
	}
	if err := options.Cleaning.validate(); err != nil {
		return nil, err
	}
	p := newProjector(newOptics(camera, options.Background, options.Cleaning), options.Source, options.Threads)
	switch {
	case options.Background.Scene != "":
		seen, err := readScene(options.Background.Scene, &camera)
		if err != nil {
			return nil, err
		}
		p.optics.removeScene(seen)
	case options.Background.Static:
		p.scene = newScene(camera)
	}
	return p, nil
}

func newProjector(o *optics, source uint16, threads int) *Projector {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	threads = min(threads, o.camera.Height)
	width, height := o.camera.Width, o.camera.Height
	p := &Projector{
		optics:   o,
		source:   source,
		near:     make([]uint16, (width+2)*(height+2)),
		object:   make([]uint16, width*height),
		surfaces: newSurfaces(width, height),
		starts:   make([]int, threads),
	}
	p.remove, p.clean, p.place = p.removeBackground, p.cleanRows, p.placePoints
	for thread := range threads {
		p.threads = append(p.threads, func() {
			p.stage(thread)
			p.done.Done()
		})
	}
	return p
}

// Clone returns a projector for another goroutine that shares the learnt background. Clone must be
// called only after Learning has become false.
func (p *Projector) Clone() *Projector { return newProjector(p.optics, p.source, len(p.threads)) }

// Camera returns the camera whose images are projected.
func (p *Projector) Camera() Camera { return p.optics.camera }

// Learning reports whether the next image is used to learn the background. Such an image adds no
// points.
func (p *Projector) Learning() bool { return p.scene != nil }

// Project appends a point for every pixel that shows the object, in the order of the image's rows.
// Without colours points are grey. If the error, which wraps ErrImage, is not nil, no points are
// added.
func (p *Projector) Project(image *Image, into *pointcloud.Cloud) error {
	return p.ProjectCleaned(image, into, nil)
}

// ProjectCleaned projects as Project does and makes cleaned, unless nil, the image without the pixels that are not
// points, and without labels. Its colours are those of the whole image, or grey.
func (p *Projector) ProjectCleaned(image *Image, into *pointcloud.Cloud, cleaned *Image) error {
	if cleaned != nil {
		*cleaned = Image{Depth: cleaned.Depth[:0], Colors: cleaned.Colors[:0], Labels: cleaned.Labels[:0]}
	}
	if err := image.Validate(&p.optics.camera); err != nil {
		return err
	}
	if p.optics.background.Mask && len(image.Labels) == 0 {
		return fmt.Errorf("%w: no labels, which the mask of the background requires", ErrImage)
	}
	p.image, p.into = image, into
	defer func() { p.image, p.into = nil, nil }()
	p.run(p.remove)
	p.run(p.clean)
	if p.scene != nil {
		p.learn()
		return nil
	}
	p.reserve(p.choose())
	p.run(p.place)
	if cleaned != nil {
		p.copyCleaned(cleaned)
	}
	return nil
}

// copyCleaned copies the pixels that became points.
func (p *Projector) copyCleaned(cleaned *Image) {
	cleaned.Depth = slices.Grow(cleaned.Depth, len(p.object))[:len(p.object)]
	clear(cleaned.Depth)
	for y := range p.optics.camera.Height {
		at, last := p.surfaces.row(y)
		for ; at < last; at++ {
			r := p.surfaces.runs[at]
			copy(cleaned.Depth[r.begin:r.end], p.object[r.begin:r.end])
		}
	}
	cleaned.Colors = append(cleaned.Colors, p.image.Colors...)
	if len(p.image.Colors) == 0 {
		cleaned.Colors = slices.Grow(cleaned.Colors, len(p.object))[:len(p.object)]
		fill(cleaned.Colors, unknownColor)
	}
}

// learn adds an image to the learnt background.
func (p *Projector) learn() {
	if p.scene.add(p.object) {
		p.optics.removeScene(p.scene.depth)
		p.scene = nil
	}
}

// run runs one stage on all threads, including the caller's.
func (p *Projector) run(stage func(thread int)) {
	p.stage = stage
	p.done.Add(len(p.threads) - 1)
	for _, thread := range p.threads[1:] {
		go thread()
	}
	stage(0)
	p.done.Wait()
}

// rows returns the rows of a thread.
func (p *Projector) rows(thread int) (first, end int) {
	height, threads := p.optics.camera.Height, len(p.threads)
	return thread * height / threads, (thread + 1) * height / threads
}
