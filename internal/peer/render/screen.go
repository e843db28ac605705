package render

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/peer/distribution"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Frame is what an object shows.
type Frame struct {
	// Number is the frame number.
	Number int64
	// Clouds must not change any more.
	Clouds []*pointcloud.Cloud
	// Box is where the object is, in its own coordinates; a screen without a view looks at all such boxes from the
	// front.
	Box volumetric.BoundingBox
	// Capture is when the frame was captured, and Decoded when the last of it was decoded, by Config.Now's clock. A
	// capture time of zero is not known.
	Capture, Decoded time.Time
}

// Config says what a Screen draws.
type Config struct {
	// View is where to look from; nil looks at everything from the front.
	View *View
	// Now is the clock that frames' times are given by.
	Now func() time.Time
	// Dir is where every so many pictures are written to, as PNG; none are where it is empty.
	Dir   string
	Every int
	Log   *slog.Logger
}

// Stats are the books of a Screen.
type Stats struct {
	// Drawn frames were in a picture; superseded ones were replaced before one was drawn.
	Drawn, Superseded int64
	// Wait is from decoded to the beginning of drawing, playout included; Draw the drawing itself; Latency from capture
	// to drawn.
	Wait, Draw, Latency distribution.Distribution
	// Written and Dropped are pictures: those of the second kind came while another was being written, or could not be.
	Written, Dropped int64
}

// Screen draws what objects show, whenever one of them shows something new: the newest frame wins.
type Screen struct {
	config   Config
	gallery  *Gallery
	finished sync.WaitGroup

	mu      sync.Mutex
	wake    sync.Cond
	objects map[string]*object
	view    *View
	places  map[string]Place
	fresh   bool
	closed  bool
	stats   Stats
	drawn   []Drawn
}

// Drawn is a frame that was in a picture for the first time. Times are the system's.
type Drawn struct {
	Object      string
	Number      int64
	Began, Done time.Time
}

// maxDrawn bounds what waits for TakeDrawn. Who does not take it loses the oldest.
const maxDrawn = 1024

// TakeDrawn appends what was drawn since the last call.
func (s *Screen) TakeDrawn(dst []Drawn) []Drawn {
	s.mu.Lock()
	defer s.mu.Unlock()
	dst = append(dst, s.drawn...)
	s.drawn = s.drawn[:0]
	return dst
}

// object is what is known of one.
type object struct {
	frame Frame
	// fresh says that the frame was not drawn yet.
	fresh bool
}

// NewScreen starts to draw.
func NewScreen(config Config) (*Screen, error) {
	s := &Screen{config: config, view: config.View, objects: make(map[string]*object), places: make(map[string]Place)}
	s.wake.L = &s.mu
	if config.Dir != "" {
		var err error
		if s.gallery, err = OpenGallery(config.Dir, config.Log); err != nil {
			return nil, err
		}
	}
	s.finished.Go(s.run)
	return s, nil
}

// Show makes a frame the one that an object shows from now on.
func (s *Screen) Show(name string, frame Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[name]; o != nil && o.fresh {
		s.stats.Superseded++
	}
	s.objects[name] = &object{frame: frame, fresh: true}
	s.fresh = true
	s.wake.Signal()
}

// Move says where an object stands, also before it shows anything.
func (s *Screen) Move(name string, place Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places[name] = place
}

// Remove takes an object away.
func (s *Screen) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[name]; o != nil && o.fresh {
		s.stats.Superseded++
	}
	delete(s.objects, name)
	delete(s.places, name)
}

// Look says where the next picture is taken from.
func (s *Screen) Look(view View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view = &view
}

// Stats are the books so far.
func (s *Screen) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Wait, stats.Draw, stats.Latency = stats.Wait.Clone(), stats.Draw.Clone(), stats.Latency.Clone()
	if s.gallery != nil {
		stats.Written, stats.Dropped = s.gallery.Counts()
	}
	return stats
}

// Close draws what is new, and ends.
func (s *Screen) Close() {
	s.mu.Lock()
	s.closed = true
	s.wake.Signal()
	s.mu.Unlock()
	s.finished.Wait()
}

// scene is what one picture shows, kept for the next one.
type scene struct {
	view   View
	layers []Layer
	// shown are the frames in it that no picture showed before, and names their objects.
	shown []Frame
	names []string
}

// run draws until the screen is closed.
func (s *Screen) run() {
	rasteriser := NewRasteriser(Width, Height, 0)
	defer rasteriser.Close()
	if s.gallery != nil {
		defer s.gallery.Close()
	}
	var scene scene
	for pictures := int64(0); s.next(&scene); pictures++ {
		begun, at := s.config.Now(), time.Now()
		rasteriser.Draw(scene.view, scene.layers)
		done, after := s.config.Now(), time.Now()
		s.book(&scene, begun, done)
		s.note(&scene, at, after)
		if s.gallery != nil && pictures%int64(s.config.Every) == 0 {
			s.gallery.Hang(pictures, rasteriser)
		}
	}
}

// next waits for something new. It tells false if the screen is closed and all was drawn.
func (s *Screen) next(scene *scene) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.fresh {
		if s.closed {
			return false
		}
		s.wake.Wait()
	}
	s.fresh = false
	clear(scene.layers)
	scene.layers, scene.shown, scene.names = scene.layers[:0], scene.shown[:0], scene.names[:0]
	for name, o := range s.objects {
		for _, cloud := range o.frame.Clouds {
			scene.layers = append(scene.layers, Layer{cloud, s.places[name]})
		}
		if o.fresh {
			scene.shown, scene.names = append(scene.shown, o.frame), append(scene.names, name)
			o.fresh = false
		}
	}
	if s.view != nil {
		scene.view = *s.view
	} else {
		scene.view = Fit(s.everything(), float64(Width)/Height)
	}
	return true
}

// everything is a box around all objects, as they stand.
func (s *Screen) everything() (all volumetric.BoundingBox) {
	for i, name := range slices.Sorted(maps.Keys(s.objects)) {
		box := s.places[name].around(s.objects[name].frame.Box)
		if i == 0 {
			all = box
		}
		for axis := range all.Min {
			all.Min[axis], all.Max[axis] = min(all.Min[axis], box.Min[axis]), max(all.Max[axis], box.Max[axis])
		}
	}
	return all
}

// note keeps when a scene's new frames were drawn.
func (s *Screen) note(scene *scene, began, done time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, name := range scene.names {
		s.drawn = append(s.drawn, Drawn{Object: name, Number: scene.shown[i].Number, Began: began, Done: done})
	}
	if over := len(s.drawn) - maxDrawn; over > 0 {
		s.drawn = slices.Delete(s.drawn, 0, over)
	}
	clear(scene.shown)
}

// book notes that a scene's new frames were drawn.
func (s *Screen) book(scene *scene, begun, done time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range scene.shown {
		f := &scene.shown[i]
		s.stats.Drawn++
		s.stats.Wait.Add(begun.Sub(f.Decoded))
		s.stats.Draw.Add(done.Sub(begun))
		if !f.Capture.IsZero() {
			s.stats.Latency.Add(done.Sub(f.Capture))
		}
	}
}
