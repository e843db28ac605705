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

// Frame is the frame of an object.
type Frame struct {
	// Number is the frame number.
	Number int64
	// Clouds must not be modified later.
	Clouds []*pointcloud.Cloud
	// Box is the extent of the object in its own coordinates. A screen without a view shows all boxes from the front.
	Box volumetric.BoundingBox
	// Capture is the capture time and Decoded the end of decoding, by the clock of Config.Now. A zero capture time
	// means that it is unknown.
	Capture, Decoded time.Time
}

// Config configures a Screen.
type Config struct {
	// View is the fixed view. nil shows everything from the front.
	View *View
	// Now is the clock of frame times.
	Now func() time.Time
	// Dir is the folder for pictures as PNG, of which every n-th is written with n = Every. If Dir is empty, no
	// pictures are written.
	Dir   string
	Every int
	Log   *slog.Logger
}

// Stats are the counters of a Screen.
type Stats struct {
	// Drawn counts frames that were in a picture, Superseded frames that were replaced before a picture had them.
	Drawn, Superseded int64
	// Wait is the time from the end of decoding to the start of drawing, including the playout delay. Draw is the time
	// of drawing. Latency is the time from capture to the end of drawing.
	Wait, Draw, Latency distribution.Distribution
	// Written and Dropped count pictures. Dropped pictures arrived while another one was being written, or writing
	// failed.
	Written, Dropped int64
}

// Screen draws a picture whenever an object has a new frame. A newer frame replaces one that was not drawn.
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

// Drawn is a frame that was in a picture for the first time. Times are by the system's clock.
type Drawn struct {
	Object      string
	Number      int64
	Began, Done time.Time
}

// maxDrawn bounds the entries that wait for TakeDrawn. The oldest entries are discarded.
const maxDrawn = 1024

// TakeDrawn appends the frames that were drawn since the last call.
func (s *Screen) TakeDrawn(dst []Drawn) []Drawn {
	s.mu.Lock()
	defer s.mu.Unlock()
	dst = append(dst, s.drawn...)
	s.drawn = s.drawn[:0]
	return dst
}

// object is the state of one object.
type object struct {
	frame Frame
	// fresh is set if the frame was not drawn yet.
	fresh bool
}

// NewScreen returns a screen and starts its drawing goroutine.
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

// Show sets the frame of an object.
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

// Move sets the pose of an object, which may not have a frame yet.
func (s *Screen) Move(name string, place Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places[name] = place
}

// Remove removes an object.
func (s *Screen) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[name]; o != nil && o.fresh {
		s.stats.Superseded++
	}
	delete(s.objects, name)
	delete(s.places, name)
}

// Look sets the view of the next picture.
func (s *Screen) Look(view View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view = &view
}

// Stats returns the counters.
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

// Close draws the last new frames and ends the drawing goroutine.
func (s *Screen) Close() {
	s.mu.Lock()
	s.closed = true
	s.wake.Signal()
	s.mu.Unlock()
	s.finished.Wait()
}

// scene is the content of one picture. The memory is reused.
type scene struct {
	view   View
	layers []Layer
	// shown has the frames that were not in an earlier picture, and names their objects.
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

// next waits for a new frame. next returns false if the screen is closed and everything was drawn.
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

// everything returns the bounding box of all objects with their poses.
func (s *Screen) everything() (all volumetric.BoundingBox) {
	for i, name := range slices.Sorted(maps.Keys(s.objects)) {
		box := s.places[name].Around(s.objects[name].frame.Box)
		if i == 0 {
			all = box
		}
		for axis := range all.Min {
			all.Min[axis], all.Max[axis] = min(all.Min[axis], box.Min[axis]), max(all.Max[axis], box.Max[axis])
		}
	}
	return all
}

// note records the drawing times of a scene's new frames.
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

// book counts a scene's new frames.
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
