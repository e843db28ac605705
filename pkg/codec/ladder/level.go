package ladder

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrSyntax reports an invalid description of qualities.
var ErrSyntax = errors.New("invalid qualities")

// Grammar is the syntax of qualities, for the help of a flag.
const Grammar = "NAME=SIZE[:BITS[:SPEED]],… from lowest to highest; SIZE is a number of points per frame (40000), a " +
	"share of the points (25%), the edge of voxels (v8mm) or a bitrate of all tiles (5Mbit), which selects points " +
	"and omitted values and follows the uplink; BITS 1 to 30 per coordinate, SPEED 0 (smallest) to 10 " +
	"(fastest); low, mid and high alone are 25%:9, 50%:10 and 100%:11"

// Level describes how one quality is made from a captured cloud. Exactly one of Points, Share and Voxel is above zero.
// A level with a Rate has none of the three until the Tuner selects one.
type Level struct {
	Name string
	// Rate is the maximum bit rate of all tiles of the quality together, 0 if the following fields are set.
	Rate volumetric.Bitrate
	// Points is the number of points per frame, all tiles together.
	Points int
	// Share is the part of the frame's points, up to 1.
	Share float64
	// Voxel is the edge of the voxels in metres.
	Voxel float32
	// Bits is the number of bits per coordinate, Speed the speed of the codec: see codec.Params. The value -1 leaves
	// the selection to the Tuner.
	Bits, Speed int
}

// At returns the level with the selected parameters.
func (l Level) At(points, bits, speed int) Level {
	l.Points, l.Bits, l.Speed = points, bits, speed
	return l
}

// DefaultSpeed is the fastest speed of the codec. Draco then needs 40 % of the time that the slowest speed needs, for
// frames that are a fifth larger. The time to encode limits the number of people in a conference long before the bit
// rate does.
const DefaultSpeed = 10

// defaultBits is 0.9 mm in a box of 1.8 m, finer than the 2 mm between the points of a person captured with 40,000.
const defaultBits = 11

var presets = map[string]Level{
	"low":  {Name: "low", Share: 0.25, Bits: 9, Speed: DefaultSpeed},
	"mid":  {Name: "mid", Share: 0.5, Bits: 10, Speed: DefaultSpeed},
	"high": {Name: "high", Share: 1, Bits: 11, Speed: DefaultSpeed},
}

// ParseLevels parses qualities; Grammar is the syntax. Errors wrap ErrSyntax and name the quality.
func ParseLevels(text string) ([]Level, error) {
	items := strings.Split(text, ",")
	if len(items) > volumetric.MaxQualities {
		return nil, fmt.Errorf("%w: got %d, expected at most %d", ErrSyntax, len(items), volumetric.MaxQualities)
	}
	seen := make(map[string]bool)
	var levels []Level
	for _, item := range items {
		level, err := parseLevel(strings.TrimSpace(item))
		if err != nil {
			return nil, err
		}
		if seen[level.Name] {
			return nil, fmt.Errorf("%w: %q is there twice", ErrSyntax, level.Name)
		}
		seen[level.Name] = true
		levels = append(levels, level)
	}
	return levels, nil
}

func parseLevel(item string) (Level, error) {
	name, rest, given := strings.Cut(item, "=")
	if !given {
		level, ok := presets[name]
		if !ok {
			return Level{}, fmt.Errorf("%w: got %.32q, expected low, mid, high or NAME=SIZE[:BITS[:SPEED]]", ErrSyntax,
				item)
		}
		return level, nil
	}
	level := Level{Name: name, Bits: defaultBits, Speed: DefaultSpeed}
	if err := checkName(name); err != nil {
		return Level{}, err
	}
	fields := strings.Split(rest, ":")
	if len(fields) > 3 {
		return Level{}, fmt.Errorf("%w: %q has %d fields, expected SIZE[:BITS[:SPEED]]", ErrSyntax, name, len(fields))
	}
	if err := level.parseSize(fields[0]); err != nil {
		return Level{}, err
	}
	if level.Rate > 0 {
		level.Bits, level.Speed = -1, -1
	}
	var err error
	if len(fields) > 1 {
		if level.Bits, err = parseNumber(name, "bits", fields[1], 1, 30); err != nil {
			return Level{}, err
		}
	}
	if len(fields) > 2 {
		if level.Speed, err = parseNumber(name, "speed", fields[2], 0, 10); err != nil {
			return Level{}, err
		}
	}
	return level, nil
}

// checkName rejects names that look like numbers or like the words of commands.
func checkName(name string) error {
	letter := false
	for _, r := range name {
		letter = letter || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !strings.ContainsRune("-_.", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return fmt.Errorf("%w: name %.32q, expected letters, digits, '-', '_' and '.'", ErrSyntax, name)
		}
	}
	if !letter || len(name) > 32 || name == "auto" || name == "off" {
		return fmt.Errorf("%w: name %.40q, expected at most 32 characters with a letter among them, and neither auto "+
			"nor off", ErrSyntax, name)
	}
	return nil
}

// parseSize parses points, a share, voxels or a rate.
func (l *Level) parseSize(text string) error {
	fail := func(expected string) error {
		return fmt.Errorf("%w: size of %q is %.32q, expected %s", ErrSyntax, l.Name, text, expected)
	}
	if edge, ok := strings.CutPrefix(text, "v"); ok {
		mm, err := strconv.ParseFloat(strings.TrimSuffix(edge, "mm"), 32)
		if err != nil || !strings.HasSuffix(edge, "mm") || !(mm >= 0.1 && mm <= 1000) {
			return fail("voxels of 0.1 to 1000 mm as in v8mm")
		}
		l.Voxel = float32(mm / 1000)
		return nil
	}
	if share, ok := strings.CutSuffix(text, "%"); ok {
		percent, err := strconv.ParseFloat(share, 64)
		if err != nil || !(percent > 0 && percent <= 100) {
			return fail("a share above 0 and up to 100 %")
		}
		l.Share = percent / 100
		return nil
	}
	if strings.HasSuffix(strings.TrimSuffix(text, "/s"), "bit") {
		bitrate, err := volumetric.ParseBitrate(text)
		if err != nil {
			return fail("a bitrate as in 5Mbit")
		}
		l.Rate = bitrate
		return nil
	}
	points, err := strconv.Atoi(text)
	if err != nil || points < 1 {
		return fail("points (40000), a share (25%), voxels (v8mm) or a bitrate (5Mbit)")
	}
	l.Points = points
	return nil
}

func parseNumber(name, what, text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%w: %s of %q is %.32q, expected %d to %d", ErrSyntax, what, name, text, least, most)
	}
	return n, nil
}

// Portion returns the share of the points of a frame with that many points that the quality has, up to 1. The share is
// 1 for voxels, which thin out all points.
func (l Level) Portion(points int) float64 {
	switch {
	case l.Voxel > 0 || l.Points > points:
		return 1
	case l.Points > 0:
		return float64(l.Points) / float64(points)
	default:
		return l.Share
	}
}

// String returns the level in the syntax of ParseLevels.
func (l Level) String() string {
	var size string
	switch {
	case l.Rate > 0:
		size = l.Name + "=" + strconv.FormatInt(int64(l.Rate), 10) + "bit"
		if l.Bits >= 0 {
			size += ":" + strconv.Itoa(l.Bits)
		}
		if l.Bits >= 0 && l.Speed >= 0 {
			size += ":" + strconv.Itoa(l.Speed)
		}
		return size
	case l.Voxel > 0:
		size = "v" + strconv.FormatFloat(float64(l.Voxel*1000), 'g', 6, 32) + "mm"
	case l.Points > 0:
		size = strconv.Itoa(l.Points)
	default:
		size = strconv.FormatFloat(l.Share*100, 'f', -1, 64) + "%"
	}
	return fmt.Sprintf("%s=%s:%d:%d", l.Name, size, l.Bits, l.Speed)
}
