// Package synthetic generates an animated human figure: a coloured point cloud of any number of points that stands,
// breathes, looks around, shifts its weight and gestures, as people do in a conference. The package needs no
// files. Every frame is a pure function of seed, number of points and time, so that two runs, or two programs, see the
// same person.
//
// The body is a field of smoothly joined solids. The surface is sampled once. Each sample has a position at rest, a
// colour, and the joint that moves it with a share. A frame computes the joints and one rigid motion per joint and
// share (the palette), and then transforms every point by its entry: one matrix per point, no allocation.
//
// A Figure is immutable; any number of goroutines may request frames concurrently.
package synthetic

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/virtual"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrConfig reports that a figure cannot be made with the configuration.
var ErrConfig = errors.New("invalid synthetic figure")

// MaxPoints is the maximum number of points: 4 million take 220 MB, and 660 MB while they are
// generated.
const MaxPoints = 4_000_000

// Config selects the person.
type Config struct {
	Points int `yaml:"points" help:"number of points"`
	Seed   int `yaml:"seed" help:"chooses looks, clothes and motion; 0 is the default person"`
}

// DefaultConfig returns the figure of the demonstration: with 40,000 points the eyes are
// distinguishable from the face.
func DefaultConfig() Config { return Config{Points: 40_000} }

// Figure is a person made of points.
type Figure struct {
	seed    uint64
	rest    [][3]float32
	normals [][3]float32 // at rest
	radii   []float32    // of discs that cover the surface
	entries []uint16     // index in the palette, per point
	colors  [][3]uint8
	labels  []uint16
	sources []uint16
	eyes    []int32  // points of the eyeballs, which the lids cover in a blink
	lid     [3]uint8 // colour of the lids
}

// covering is the radius of discs that cover the surface, relative to the mean distance of their centres. The gaps of a
// random order are that large.
const covering = 1.5

// New samples the figure's surface, on all processors. New takes about 0.1 s of processor time, plus 7 µs for each
// point.
func New(cfg Config) (*Figure, error) {
	if cfg.Points < 1 || cfg.Points > MaxPoints {
		return nil, fmt.Errorf("%w: %d points, expected 1 to %d", ErrConfig, cfg.Points, MaxPoints)
	}
	seed := uint64(cfg.Seed)
	looks := newAppearance(seed)
	samples, distance := surface(newBody(looks.style), cfg.Points, seed)
	f := &Figure{
		seed:    seed,
		rest:    make([][3]float32, cfg.Points),
		normals: make([][3]float32, cfg.Points),
		radii:   make([]float32, cfg.Points),
		entries: make([]uint16, cfg.Points),
		colors:  make([][3]uint8, cfg.Points),
		labels:  make([]uint16, cfg.Points),
		sources: make([]uint16, cfg.Points),
	}
	for channel := range 3 {
		f.lid[channel] = uint8(255 * 0.82 * looks.skin[channel])
	}
	inParallel(len(samples), func(i int) {
		s := &samples[i]
		place := s.position.add(s.normal.scale(looks.relief(s, i)))
		f.rest[i] = [3]float32{float32(place[0]), float32(place[1]), float32(place[2])}
		f.normals[i] = [3]float32{float32(s.normal[0]), float32(s.normal[1]), float32(s.normal[2])}
		f.radii[i] = float32(covering * distance / math.Sqrt(density(s.owner)))
		f.entries[i] = entry(attach(s.owner, s.position))
		f.colors[i] = looks.paint(s, i)
		f.labels[i] = s.owner.label()
		f.sources[i] = seenBy(s.normal)
	})
	for i := range samples {
		if samples[i].material == eyeball {
			f.eyes = append(f.eyes, int32(i))
		}
	}
	return f, nil
}

// Points returns the number of points of every frame.
func (f *Figure) Points() int { return len(f.rest) }

// Box returns a box that contains every point of every frame of every figure. The person stands on
// y = 0 in its middle and faces +z.
func Box() volumetric.BoundingBox {
	return volumetric.BoundingBox{Min: [3]float32{-0.8, -0.02, -0.8}, Max: [3]float32{0.8, 1.8, 0.8}}
}

// At replaces the cloud's points by the figure at a time. Points keep their index from frame to
// frame. The order is random over the surface, so that any prefix or stride is an even sample.
// Points have labels by body part, and the set of cameras that would see them if four cameras stood
// around the figure at rest.
func (f *Figure) At(t time.Duration, into *pointcloud.Cloud) {
	var maps palette
	pose := at(f.seed, t.Seconds())
	pose.fill(&maps)
	into.Positions = append(into.Positions[:0], f.rest...)
	into.Colors = append(into.Colors[:0], f.colors...)
	into.Labels = append(into.Labels[:0], f.labels...)
	into.Sources = append(into.Sources[:0], f.sources...)
	f.move(&maps, into.Positions)
	if pose.blink {
		f.closeEyes(into.Colors)
	}
}

// SurfaceAt replaces a surface by that of the figure at a time, one disc for each point. The radii are shared by all
// surfaces of the figure and must not be changed. Discs of 100,000 points and more show folds of clothes and the
// features of the face.
func (f *Figure) SurfaceAt(t time.Duration, into *virtual.Surfels) {
	var maps palette
	pose := at(f.seed, t.Seconds())
	pose.fill(&maps)
	into.Positions = append(into.Positions[:0], f.rest...)
	into.Normals = append(into.Normals[:0], f.normals...)
	into.Colors = append(into.Colors[:0], f.colors...)
	into.Radii = f.radii
	f.move(&maps, into.Positions)
	for i := range maps {
		clear(maps[i][9:]) // normals turn and do not shift
	}
	f.move(&maps, into.Normals)
	if pose.blink {
		f.closeEyes(into.Colors)
	}
}

// move applies the motions of the bones to one vector of each point.
func (f *Figure) move(maps *palette, vectors [][3]float32) {
	entries := f.entries[:len(vectors)]
	for i := range vectors {
		m, p := &maps[entries[i]], &vectors[i]
		x, y, z := p[0], p[1], p[2]
		p[0] = m[0]*x + m[1]*y + m[2]*z + m[9]
		p[1] = m[3]*x + m[4]*y + m[5]*z + m[10]
		p[2] = m[6]*x + m[7]*y + m[8]*z + m[11]
	}
}

// closeEyes covers the eyes with the lids.
func (f *Figure) closeEyes(colors [][3]uint8) {
	for _, i := range f.eyes {
		colors[i] = f.lid
	}
}
