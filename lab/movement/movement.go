// Package movement has the positions of people in an experiment and derives the quality of tiles from the positions: as
// in VR2Gather, the tile closest to the viewer has the highest quality, and all others have the lowest. Paths are read
// from files, and decisions are made before a run. All functions are pure except for reading and writing.
package movement

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrPath is returned for invalid paths. The wrapping error has the reason.
var ErrPath = errors.New("invalid path")

// Stand is the position of a person at a time.
type Stand struct {
	At time.Duration
	// X, Y and Z are in metres: to the right, up, and towards the viewer. Yaw is the turn to the left about the upward
	// axis, in radians.
	X, Y, Z, Yaw float64
}

// Path is the positions of a person over time, in the order of time.
type Path []Stand

// Limits of files: a thousand positions per second for 20 minutes.
const (
	maxStands = 1 << 20
	maxLine   = 1024
)

// Header is the first line of files of paths.
const Header = "t_s,x_m,y_m,z_m,yaw_deg"

// Read reads a path: the line Header, and one line for each position, in the order of time. Errors wrap ErrPath.
func Read(in io.Reader) (Path, error) {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, maxLine), maxLine)
	var path Path
	for line := 1; scanner.Scan(); line++ {
		text := strings.TrimSpace(scanner.Text())
		switch {
		case line == 1 && text != Header:
			return nil, fmt.Errorf("%w: first line is %.64q, expected %s", ErrPath, text, Header)
		case line == 1 || text == "":
			continue
		case len(path) == maxStands:
			return nil, fmt.Errorf("%w: more than %d lines", ErrPath, maxStands)
		}
		s, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if n := len(path); n > 0 && s.At <= path[n-1].At {
			return nil, fmt.Errorf("line %d: %w: at %v, expected after %v", line, ErrPath, s.At, path[n-1].At)
		}
		path = append(path, s)
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPath, err)
	}
	if len(path) == 0 {
		return nil, fmt.Errorf("%w: no lines after %s", ErrPath, Header)
	}
	return path, nil
}

// farthest bounds coordinates in metres and turns in degrees.
const farthest = 1e6

func parse(text string) (Stand, error) {
	fields := strings.Split(text, ",")
	var values [5]float64
	if len(fields) != len(values) {
		return Stand{}, fmt.Errorf("%w: %d fields, expected %s", ErrPath, len(fields), Header)
	}
	for i, field := range fields {
		v, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
		if err != nil || !(math.Abs(v) <= farthest) || i == 0 && v < 0 {
			return Stand{}, fmt.Errorf("%w: %.32q, expected a number up to %g", ErrPath, field, float64(farthest))
		}
		values[i] = v
	}
	return Stand{time.Duration(values[0] * float64(time.Second)), values[1], values[2], values[3],
		values[4] * math.Pi / 180}, nil
}

// Write writes a path in the format of Read.
func Write(out io.Writer, path Path) error {
	w := bufio.NewWriter(out)
	_, _ = fmt.Fprintln(w, Header)
	for _, s := range path {
		_, _ = fmt.Fprintf(w, "%.6f,%.6f,%.6f,%.6f,%.6f\n", s.At.Seconds(), s.X, s.Y, s.Z, s.Yaw*180/math.Pi)
	}
	return w.Flush()
}

// At returns the position at a time: between two positions of the path, on the line and with the shorter turn; before
// the first and after the last, theirs.
func (p Path) At(t time.Duration) Stand {
	next := sort.Search(len(p), func(i int) bool { return p[i].At > t })
	switch {
	case next == 0:
		return p[0]
	case next == len(p):
		return p[len(p)-1]
	}
	a, b := p[next-1], p[next]
	part := float64(t-a.At) / float64(b.At-a.At)
	mix := func(from, to float64) float64 { return from + part*(to-from) }
	return Stand{t, mix(a.X, b.X), mix(a.Y, b.Y), mix(a.Z, b.Z), a.Yaw + part*math.Remainder(b.Yaw-a.Yaw, 2*math.Pi)}
}

// Circle returns the path of a person who walks round the origin, one turn per period, and looks at the origin. Phase
// is the start, in turns. Two people half a turn apart circle each other.
func Circle(radius, turn, phase float64, length, step time.Duration) Path {
	var path Path
	for at := time.Duration(0); at <= length; at += step {
		angle := 2 * math.Pi * (phase + at.Seconds()/turn)
		// The front of a figure is towards +z. The figure looks at the origin if its turn is half a turn more than its
		// position.
		path = append(path, Stand{At: at, X: radius * math.Sin(angle), Z: radius * math.Cos(angle),
			Yaw: math.Remainder(angle+math.Pi, 2*math.Pi)})
	}
	return path
}

// Closest returns the tile of an object that is closest to a viewer, by the middles of the boxes in the object's
// coordinates.
func Closest(viewer, object Stand, tiles []volumetric.Tile) int {
	// The viewer is converted into the object's coordinates: moved, and turned back about the upward axis.
	dx, dy, dz := viewer.X-object.X, viewer.Y-object.Y, viewer.Z-object.Z
	sin, cos := math.Sincos(-object.Yaw)
	x, z := cos*dx+sin*dz, cos*dz-sin*dx
	best, least := 0, math.Inf(1)
	for i, t := range tiles {
		distance := 0.0
		for axis, v := range [3]float64{x, dy, z} {
			middle := (float64(t.Box.Min[axis]) + float64(t.Box.Max[axis])) / 2
			distance += (v - middle) * (v - middle)
		}
		if distance < least {
			best, least = i, distance
		}
	}
	return best
}

// Decisions returns the decisions of a viewer of an object: the first at the beginning, and one whenever another tile
// has become the closest, checked after each step. The closest tile has the highest quality and all others have the
// lowest.
func Decisions(viewer, object Path, tiles []volumetric.Tile, qualities int, length,
	step time.Duration) []carriage.Decision {
	var list []carriage.Decision
	before := -1
	for at := time.Duration(0); at <= length; at += step {
		closest := Closest(viewer.At(at), object.At(at), tiles)
		if closest == before {
			continue
		}
		before = closest
		d := carriage.Decision{At: at, Qualities: make([]volumetric.Quality, len(tiles))}
		d.Qualities[closest] = volumetric.Quality(qualities - 1)
		list = append(list, d)
	}
	return list
}
