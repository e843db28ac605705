package control

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
)

// ErrViewers reports an invalid file of recorded viewers. The wrapping error describes the fault.
var ErrViewers = errors.New("invalid viewport traces")

// The columns of a file of recorded viewers, and the number of rows per second.
const (
	columnPosition, columnAngles, columnViewer = 1, 4, 7
	viewerRate                                 = 30
)

// readViewers reads the viewpoints of recorded viewers, one trace per viewer. The file uses Unity's axes: left-handed,
// z away from the viewer, angles in degrees about z, then x, then y. Mirroring z converts to our axes and reverses the
// sense of the angles about x and y. The file has no angle of view: fov is in radians.
func readViewers(name string, fov, aspect float64) ([][]allocate.Viewpoint, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read viewport traces: %w", err)
	}
	defer func() { _ = file.Close() }()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrViewers, name, err)
	}
	var traces [][]allocate.Viewpoint
	viewer := ""
	for i, row := range rows[min(1, len(rows)):] {
		if len(row) <= columnViewer {
			return nil, fmt.Errorf("%w: %s: row %d has %d columns, expected more than %d", ErrViewers, name, i+2,
				len(row), columnViewer)
		}
		var n [6]float64 // position and angles
		for j := range n {
			if n[j], err = strconv.ParseFloat(row[columnPosition+j], 64); err != nil {
				return nil, fmt.Errorf("%w: %s: row %d: %w", ErrViewers, name, i+2, err)
			}
		}
		if row[columnViewer] != viewer || traces == nil {
			viewer = row[columnViewer]
			traces = append(traces, nil)
		}
		trace := &traces[len(traces)-1]
		*trace = append(*trace, allocate.Viewpoint{
			At:       epoch.Add(time.Duration(len(*trace)) * time.Second / viewerRate),
			Position: [3]float64{n[0], n[1], -n[2]},
			Orientation: turned(-n[columnAngles-columnPosition], -n[columnAngles-columnPosition+1],
				n[columnAngles-columnPosition+2]),
			FOV: fov, Aspect: aspect,
		})
	}
	return traces, nil
}

// turned returns the unit quaternion (x, y, z, w) of a rotation about z, then x, then y, in degrees.
func turned(x, y, z float64) [4]float64 {
	half := func(degrees float64) (sin, cos float64) { return math.Sincos(degrees * math.Pi / 360) }
	sx, cx := half(x)
	sy, cy := half(y)
	sz, cz := half(z)
	return [4]float64{
		cy*sx*cz + sy*cx*sz,
		sy*cx*cz - cy*sx*sz,
		cy*cx*sz - sy*sx*cz,
		cy*cx*cz + sy*sx*sz,
	}
}
