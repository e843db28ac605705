// Package extrinsics computes the poses of several cameras from pictures of one calibration board. The board is moved
// through the space that the cameras see; at each place, a shot, every camera that sees the board contributes the
// places of the board's corners in its picture. The poses of the cameras and of the board minimise the distances
// between the seen and the computed places (bundle adjustment: B. Triggs et al., "Bundle adjustment, a modern
// synthesis", 2000).
//
// The package has no state. Motions inside of it have the axes of pictures: y down, z forward.
package extrinsics

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/volsfu/volsfu/pkg/capture/depth"
)

// Errors of a calibration. The wrapping error names the camera and says what to do.
var (
	ErrViews      = errors.New("too few pictures of the board")
	ErrUnrelated  = errors.New("cameras without a common picture of the board")
	ErrInaccurate = errors.New("the calibration is not accurate")
)

// Sight is a corner of the board in a picture: its place on the board in metres, and in the picture in pixels.
type Sight struct {
	Board [3]float64
	U, V  float64
}

// View has the corners of the board that one camera sees in one shot.
type View struct {
	// Camera is the index of the camera. Shot is any number that the views of one place of the board have in common.
	Camera, Shot int
	Sights       []Sight
}

// Origin is the origin and the axes of the world.
type Origin int

// FirstCamera is the first camera; Board is the board of the first shot, lying face up on the floor: its middle is the
// origin, y is up, and x is along its rows.
const (
	FirstCamera Origin = iota
	Board
)

// Config has the conditions of a calibration.
type Config struct {
	Origin Origin
	// MaxError is the greatest root mean square distance of a camera's corners, in pixels.
	MaxError float64
	// MaxPosition and MaxAngle are the greatest standard deviations of a camera's position in metres and of its
	// rotation in radians, relative to the first camera.
	MaxPosition, MaxAngle float64
	// LeastShots is the least number of shots of each camera, 1 or more.
	LeastShots int
}

// DefaultConfig returns conditions under which seams between cameras are invisible: corners are found to a tenth of a
// pixel, so that a pixel is a sign of a moved camera, a wrong size or a bent board.
func DefaultConfig() Config {
	return Config{MaxError: 1, MaxPosition: 0.005, MaxAngle: 0.3 * math.Pi / 180, LeastShots: 3}
}

// Camera is the result of a camera.
type Camera struct {
	Name string
	// Pose is the motion from the camera's coordinates to the world's, with this module's axes: y up, z back.
	Pose depth.Pose
	// Shots and Corners are the numbers of shots and corners that count, Dropped the number of shots that contradict
	// the others, for example because the board moved.
	Shots, Corners, Dropped int
	// Error is the root mean square distance of the seen and the computed corners, in pixels.
	Error float64
	// Position and Angle are standard deviations, in metres and radians, relative to the first camera. They count the
	// noise of the corners and the number of shots, but not errors of the intrinsics and of the board.
	Position, Angle float64
}

// leastSights is the least number of corners of a view.
const leastSights = 8

// Solve returns the poses of one or more cameras. Errors wrap ErrViews, ErrUnrelated or ErrInaccurate. With
// ErrInaccurate, the cameras are returned as well, for a report.
func Solve(cameras []depth.Camera, views []View, config Config) ([]Camera, error) {
	s := &solver{cameras: cameras, config: config}
	for _, v := range views {
		if len(v.Sights) < leastSights {
			continue
		}
		if place, ok := s.locate(v); ok {
			s.views = append(s.views, located{View: v, place: place})
		}
	}
	if err := s.counted(); err != nil {
		return nil, err
	}
	if err := s.relate(); err != nil {
		return nil, err
	}
	deviations := s.adjust()
	if s.drop() {
		if err := s.counted(); err != nil {
			return nil, err
		}
		if err := s.relate(); err != nil {
			return nil, err
		}
		deviations = s.adjust()
	}
	result := s.result(deviations)
	return result, s.judge(result)
}

// solver computes the poses.
type solver struct {
	cameras []depth.Camera
	config  Config
	views   []located
	dropped []View
	// rig has the motions from the first camera to each camera, boards those from the board of each shot to the first
	// camera.
	rig    []depth.Pose
	boards map[int]depth.Pose
}

// located is a view with the motion from the board to its camera, by this view alone.
type located struct {
	View
	place depth.Pose
}

// counted checks the numbers of shots.
func (s *solver) counted() error {
	shots := make([]int, len(s.cameras))
	for _, v := range s.views {
		shots[v.Camera]++
	}
	for i, n := range shots {
		if n < s.config.LeastShots {
			return fmt.Errorf("%w: camera %q sees the board in %d shots, expected at least %d; hold the board "+
				"still at more places in front of the camera, nearer or better lit", ErrViews, s.cameras[i].Name, n,
				s.config.LeastShots)
		}
	}
	return nil
}

// relate computes first poses of the cameras and boards: camera by camera, from a shot that the camera shares with a
// camera whose pose is known.
func (s *solver) relate() error {
	places := make([]map[int]depth.Pose, len(s.cameras))
	for i := range places {
		places[i] = make(map[int]depth.Pose)
	}
	for _, v := range s.views {
		places[v.Camera][v.Shot] = v.place
	}
	s.rig = make([]depth.Pose, len(s.cameras))
	known := make([]bool, len(s.cameras))
	known[0] = true
	for count := 1; count < len(s.cameras); count++ {
		from, to, most := -1, -1, 0
		for i := range s.cameras {
			for k := range s.cameras {
				if !known[i] || known[k] {
					continue
				}
				if n := len(common(places[i], places[k])); n > most {
					from, to, most = i, k, n
				}
			}
		}
		if to < 0 {
			var unrelated []string
			for i, ok := range known {
				if !ok {
					unrelated = append(unrelated, fmt.Sprintf("%q", s.cameras[i].Name))
				}
			}
			return fmt.Errorf("%w: %s and %q never see the board at the same time; hold the board where both see it",
				ErrUnrelated, strings.Join(unrelated, ", "), s.cameras[0].Name)
		}
		s.rig[to] = s.between(places[from], places[to]).After(s.rig[from])
		known[to] = true
	}
	s.boards = make(map[int]depth.Pose)
	for _, v := range s.views {
		if _, ok := s.boards[v.Shot]; !ok {
			s.boards[v.Shot] = s.rig[v.Camera].Inverse().After(v.place)
		}
	}
	return nil
}

// common returns the shots in both.
func common(a, b map[int]depth.Pose) []int {
	var shots []int
	for shot := range a {
		if _, ok := b[shot]; ok {
			shots = append(shots, shot)
		}
	}
	slices.Sort(shots)
	return shots
}

// between returns the motion from one camera to another: of the motions by each common shot, the one nearest to all
// others, since a shot alone can be ambiguous.
func (s *solver) between(from, to map[int]depth.Pose) depth.Pose {
	var motions []depth.Pose
	for _, shot := range common(from, to) {
		motions = append(motions, to[shot].After(from[shot].Inverse()))
	}
	best, least := motions[0], math.Inf(1)
	for _, m := range motions {
		sum := 0.0
		for _, other := range motions {
			sum += angle(m.After(other.Inverse())) + distance(m.Translation, other.Translation)
		}
		if sum < least {
			best, least = m, sum
		}
	}
	return best
}

// angle returns the angle of a rotation.
func angle(p depth.Pose) float64 {
	q := p.Quaternion()
	return 2 * math.Atan2(math.Sqrt(q[0]*q[0]+q[1]*q[1]+q[2]*q[2]), math.Abs(q[3]))
}

func distance(a, b [3]float64) float64 {
	return math.Sqrt((a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1]) + (a[2]-b[2])*(a[2]-b[2]))
}

// contradiction is the error of a view, relative to the median of all views, from which on the view is dropped,
// and leastContradiction the least such error in pixels.
const (
	contradiction      = 3
	leastContradiction = 0.5
)

// drop removes views that contradict the others, and reports whether there are any.
func (s *solver) drop() bool {
	rms := make([]float64, len(s.views))
	for i, v := range s.views {
		rms[i] = s.errorOf(v.View)
	}
	limit := max(contradiction*median(rms), leastContradiction)
	var kept []located
	for i, v := range s.views {
		if rms[i] <= limit {
			kept = append(kept, v)
		} else {
			s.dropped = append(s.dropped, v.View)
		}
	}
	changed := len(kept) < len(s.views)
	s.views = kept
	return changed
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// errorOf returns the root mean square distance of a view's corners in pixels.
func (s *solver) errorOf(v View) float64 {
	sum := 0.0
	for _, sight := range v.Sights {
		u, w := s.residual(v, sight)
		sum += u*u + w*w
	}
	return math.Sqrt(sum / float64(len(v.Sights)))
}

// residual returns the distance of a corner from its computed place in pixels.
func (s *solver) residual(v View, sight Sight) (u, w float64) {
	at := s.rig[v.Camera].Apply(s.boards[v.Shot].Apply(sight.Board))
	return miss(&s.cameras[v.Camera], at, sight)
}

// behind is the distance in pixels of a point that the camera cannot see.
const behind = 1e4

func miss(c *depth.Camera, at [3]float64, sight Sight) (u, w float64) {
	if at[2] < 1e-3 {
		return behind, behind
	}
	u, w, ok := c.Project(at[0]/at[2], at[1]/at[2])
	if !ok {
		return behind, behind
	}
	return u - sight.U, w - sight.V
}

// result returns the cameras in the world. deviations are those of the adjustment.
func (s *solver) result(deviations []deviation) []Camera {
	var world depth.Pose // from the first camera, both with y down, to the world, with y up
	if s.config.Origin == Board {
		first := slices.MinFunc(s.views, func(a, b located) int { return a.Shot - b.Shot }).Shot
		world = face.After(s.boards[first].Inverse())
	} else {
		world = vision
	}
	result := make([]Camera, len(s.cameras))
	for i := range result {
		c := &result[i]
		c.Name = s.cameras[i].Name
		// From the camera's coordinates with y up to the first camera's, then to the world.
		c.Pose = world.After(s.rig[i].Inverse()).After(vision)
		sum := 0.0
		for _, v := range s.views {
			if v.Camera == i {
				c.Shots++
				c.Corners += len(v.Sights)
				e := s.errorOf(v.View)
				sum += e * e * float64(len(v.Sights))
			}
		}
		for _, v := range s.dropped {
			if v.Camera == i {
				c.Dropped++
			}
		}
		c.Error = math.Sqrt(sum / float64(c.Corners))
		c.Position, c.Angle = deviations[i].position, deviations[i].angle
	}
	return result
}

// vision converts between y down, z forward, and y up, z back. face converts from the axes of a board that lies face up
// to y up: z of the board points into the floor.
var (
	vision = depth.Pose{Rotation: [3][3]float64{{1, 0, 0}, {0, -1, 0}, {0, 0, -1}}}
	face   = depth.Pose{Rotation: [3][3]float64{{1, 0, 0}, {0, 0, -1}, {0, 1, 0}}}
)

// judge returns an error for the first camera that does not meet the conditions.
func (s *solver) judge(result []Camera) error {
	for _, c := range result {
		switch {
		case !(c.Error <= s.config.MaxError):
			return fmt.Errorf("%w: corners of camera %q are %.2f px off on average, expected at most %g px; the "+
				"size of the squares or the camera's intrinsics are wrong, the board is bent, or a camera was moved",
				ErrInaccurate, c.Name, c.Error, s.config.MaxError)
		case !(c.Position <= s.config.MaxPosition && c.Angle <= s.config.MaxAngle):
			return fmt.Errorf("%w: the position of camera %q is known to %.1f mm and %.2f°, expected %.1f mm and "+
				"%.2f°; show the board at more places and tilts, and nearer", ErrInaccurate, c.Name, 1000*c.Position,
				c.Angle*180/math.Pi, 1000*s.config.MaxPosition, s.config.MaxAngle*180/math.Pi)
		}
	}
	return nil
}
