// Package viewtrace reads recorded head movements and replays them, so that a receiving client can move its viewpoint
// without a user. A Trace does not change and is safe for concurrent use.
package viewtrace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
)

// ErrTrace is returned for a malformed recording.
var ErrTrace = errors.New("invalid viewpoint trace")

// Rate is the number of viewpoints per second in a recording: one for each frame of the watched video.
const Rate = 30

// The field of view, which recordings do not contain: a headset shows each eye about 90 degrees, with equal width and
// height.
const (
	fov    = math.Pi / 2
	aspect = 1
)

// maxViewpoints bounds a recording to five hours.
const maxViewpoints = 5 * 3600 * Rate

// largest bounds coordinates in metres, as in signalling, and angles in degrees.
const largest = signal.MaxCoordinate

// columns are the columns that are read, by the names in the header line: position in metres, rotations in degrees.
var columns = [...]string{"HMDPX", "HMDPY", "HMDPZ", "HMDRX", "HMDRY", "HMDRZ"}

// participantColumn is the name of the column with the participant.
const participantColumn = "Participant"

// Trace has the viewpoints of one person, at least one.
type Trace struct {
	viewpoints []client.Viewpoint
}

// Open reads the recording of one participant from a file. If participant is empty, the first participant in the file
// is used.
func Open(path, participant string) (*Trace, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	trace, err := Read(file, participant)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return trace, nil
}

// Read reads the recording of one participant, as Open does. Errors wrap ErrTrace and name the line.
//
// Recordings use Unity's coordinates: left-handed, z forward, rotated about z, then x, then y. The room's coordinates
// are right-handed with z towards the viewer, so that z is mirrored.
func Read(from io.Reader, participant string) (*Trace, error) {
	rows := csv.NewReader(from)
	rows.ReuseRecord = true
	first, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTrace, err)
	}
	places := make(map[string]int)
	for i, name := range first {
		places[name] = i
	}
	for _, name := range columns {
		if _, ok := places[name]; !ok {
			return nil, fmt.Errorf("%w: no column %s", ErrTrace, name)
		}
	}
	place, several := places[participantColumn]
	trace := &Trace{}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTrace, err)
		}
		if several {
			if participant == "" {
				participant = row[place]
			}
			if row[place] != participant {
				continue
			}
		}
		var values [len(columns)]float64
		for i, name := range columns {
			if values[i], err = strconv.ParseFloat(row[places[name]], 64); err != nil ||
				!(math.Abs(values[i]) <= largest) {
				line, _ := rows.FieldPos(places[name])
				return nil, fmt.Errorf("%w: line %d: %s is %.32q, expected a number up to %g", ErrTrace, line, name,
					row[places[name]], float64(largest))
			}
		}
		if len(trace.viewpoints) == maxViewpoints {
			return nil, fmt.Errorf("%w: more than %d viewpoints", ErrTrace, maxViewpoints)
		}
		trace.viewpoints = append(trace.viewpoints, client.Viewpoint{
			Position:    [3]float64{values[0], values[1], -values[2]},
			Orientation: orientation(values[3], values[4], values[5]),
			FOV:         fov,
			Aspect:      aspect,
		})
	}
	if len(trace.viewpoints) == 0 {
		return nil, fmt.Errorf("%w: no viewpoints of %q", ErrTrace, participant)
	}
	return trace, nil
}

// At returns the viewpoint at a time since the beginning. The recording is repeated.
func (t *Trace) At(elapsed time.Duration) client.Viewpoint {
	i := int(elapsed*Rate/time.Second) % len(t.viewpoints)
	return t.viewpoints[max(i, 0)]
}

// orientation converts Unity's angles in degrees into a quaternion in the room's coordinates. Mirroring z inverts
// rotations about x and y.
func orientation(x, y, z float64) [4]float64 {
	q := product(about(1, -y), product(about(0, -x), about(2, z)))
	length := math.Sqrt(q[0]*q[0] + q[1]*q[1] + q[2]*q[2] + q[3]*q[3])
	for i := range q {
		q[i] /= length
	}
	return q
}

// about returns the rotation by an angle in degrees about an axis.
func about(axis int, angle float64) [4]float64 {
	sin, cos := math.Sincos(angle * math.Pi / 360)
	q := [4]float64{3: cos}
	q[axis] = sin
	return q
}

// product returns the rotation by b and then by a.
func product(a, b [4]float64) [4]float64 {
	return [4]float64{
		a[3]*b[0] + a[0]*b[3] + a[1]*b[2] - a[2]*b[1],
		a[3]*b[1] - a[0]*b[2] + a[1]*b[3] + a[2]*b[0],
		a[3]*b[2] + a[0]*b[1] - a[1]*b[0] + a[2]*b[3],
		a[3]*b[3] - a[0]*b[0] - a[1]*b[1] - a[2]*b[2],
	}
}
