package depth

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Options say what a Projector makes of a camera's images.
type Options struct {
	Background Background
	Cleaning   Cleaning
	// Source is set in Cloud.Sources of every point, one bit for the camera; 0 leaves Sources alone.
	Source uint16
	// Threads is how many processors one image may take; 0 takes all.
	Threads int
}

// DefaultOptions keep everything that is a surface.
func DefaultOptions() Options { return Options{Cleaning: DefaultCleaning()} }

// Projector turns the images of one camera into points. It belongs to one goroutine.
type Projector struct {
	optics  *optics
	source  uint16
	scene   *scene // nil where no background is being learnt
	threads []func()
	done    sync.WaitGroup

	// near is what is left after the background was removed, with a rim of zeros, so that every pixel has 8 neighbours. object is what is left after cleaning.
	near, object []uint16
	surfaces     surfaces

	// The image under way, and what the threads do with it.
	image  *Image
	into   *pointcloud.Cloud
	stage  func(thread int)
	starts []int // by thread, where its points begin in the cloud

	remove, clean, place func(thread int) // the stages, bound once: a bound method takes memory
}

// NewProjector makes a projector. Where the background has a scene, it is read now.
//
// Errors are around ErrCamera, ErrBackground or ErrCleaning.
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

// Clone is a projector for another goroutine that shares what this one has learnt. It is made once Learning is false.
func (p *Projector) Clone() *Projector { return newProjector(p.optics, p.source, len(p.threads)) }

// Camera is the camera whose images are projected.
func (p *Projector) Camera() Camera { return p.optics.camera }

// Learning tells whether the next image shows the background only: it adds no points.
func (p *Projector) Learning() bool { return p.scene != nil }

// Project appends a point for every pixel that shows the object, in the order of the image's rows. Where there are no colours, points are grey. Errors are around
// ErrImage; then no points are added.
func (p *Projector) Project(image *Image, into *pointcloud.Cloud) error {
	if err := image.Validate(&p.optics.camera); err != nil {
		return err
	}
	if p.optics.background.Mask && len(image.Labels) == 0 {
		return fmt.Errorf("%w: no labels, which the background's mask is made of", ErrImage)
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
	return nil
}

// learn adds an image to what is known of the background.
func (p *Projector) learn() {
	if p.scene.add(p.object) {
		p.optics.removeScene(p.scene.depth)
		p.scene = nil
	}
}

// run does one stage on all threads, the first of which is the caller's.
func (p *Projector) run(stage func(thread int)) {
	p.stage = stage
	p.done.Add(len(p.threads) - 1)
	for _, thread := range p.threads[1:] {
		go thread()
	}
	stage(0)
	p.done.Wait()
}

// rows are those that a thread has.
func (p *Projector) rows(thread int) (first, end int) {
	height, threads := p.optics.camera.Height, len(p.threads)
	return thread * height / threads, (thread + 1) * height / threads
}
