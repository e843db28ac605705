package pointcloud

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Indices of the values of a point in layout and rows.
const (
	positionX = iota
	positionY
	positionZ
	colorRed
	colorGreen
	colorBlue
	pointLabel
	pointSources
	pointValues
)

// midGrey is the colour of points in files without colours.
var midGrey = [3]uint8{128, 128, 128}

// column locates one value of a point in the vertex.
type column struct {
	// property is the index of the vertex's property, -1 if the file has no such property.
	property int
	kind     scalar
	// offset is the offset from the start of the vertex in bytes, for binary files without lists.
	offset int
}

// layout locates the values of points in the element "vertex".
type layout struct {
	columns [pointValues]column
	colored bool
	// labelled and sourced report that points have labels, and camera masks.
	labelled, sourced bool
}

// Property names. The last name is written; the names before it are also read: "tile" is cwipc's name for the cameras,
// "class" and "classification" are names of labels in segmentation.
var (
	labelNames  = []string{"class", "classification", "label"}
	sourceNames = []string{"tile", "cameras"}
)

// optional finds an integer property of a vertex. Later names take precedence.
func optional(columns map[string]column, names []string) (found column, ok bool) {
	for _, name := range names {
		if c, there := columns[name]; there && !c.kind.floating() {
			found, ok = c, true
		}
	}
	return found, ok
}

// colorNames are tried in this order; the second is written by older exporters.
var colorNames = [][3]string{{"red", "green", "blue"}, {"diffuse_red", "diffuse_green", "diffuse_blue"}}

// newLayout finds the properties of points in the element.
func newLayout(e *element) (layout, error) {
	var l layout
	offset := 0
	columns := map[string]column{}
	for i, p := range e.properties {
		if p.count != noScalar {
			continue
		}
		columns[p.name] = column{property: i, kind: p.value, offset: offset}
		offset += p.value.size()
	}
	for i, name := range []string{"x", "y", "z"} {
		c, ok := columns[name]
		if !ok {
			return l, fmt.Errorf(
				"%w: element vertex has no single property %q, expected x, y and z",
				ErrMalformed,
				name,
			)
		}
		if !c.kind.floating() {
			return l, fmt.Errorf("%w: property %q is an integer, expected float or double", ErrMalformed, name)
		}
		l.columns[positionX+i] = c
	}
	for i := colorRed; i < pointValues; i++ {
		l.columns[i].property = -1
	}
	if c, ok := optional(columns, labelNames); ok {
		l.columns[pointLabel], l.labelled = c, true
	}
	if c, ok := optional(columns, sourceNames); ok {
		l.columns[pointSources], l.sourced = c, true
	}
	for _, names := range colorNames {
		var missing []string
		for i, name := range names {
			c, ok := columns[name]
			if !ok {
				missing = append(missing, name)
				continue
			}
			if c.kind != uint8Scalar && !c.kind.floating() {
				return l, fmt.Errorf(
					"%w: property %q is an integer other than uchar, expected uchar, float or double",
					ErrMalformed,
					name,
				)
			}
			l.columns[colorRed+i] = c
		}
		if len(missing) == len(names) {
			continue
		}
		if len(missing) > 0 {
			return l, fmt.Errorf(
				"%w: element vertex has no properties %q, expected all of %q or none",
				ErrMalformed,
				missing,
				names,
			)
		}
		l.colored = true
		break
	}
	return l, nil
}

// row contains the values of one point as read: positions in metres, colours 0 to 255, labels and
// cameras unchanged.
type row [pointValues]float64

// appendTo adds the point to the cloud, unless the position is not finite.
func (l *layout) appendTo(cloud *Cloud, v *row) {
	p := [3]float32{float32(v[positionX]), float32(v[positionY]), float32(v[positionZ])}
	if !finite(p) {
		return
	}
	color := midGrey
	if l.colored {
		for i := range color {
			value := v[colorRed+i]
			if l.columns[colorRed+i].kind.floating() {
				value = value*255 + 0.5
			}
			if !(value > 0) {
				value = 0
			}
			color[i] = uint8(min(value, 255))
		}
	}
	cloud.Positions = append(cloud.Positions, p)
	cloud.Colors = append(cloud.Colors, color)
	if l.labelled {
		cloud.Labels = append(cloud.Labels, whole(v[pointLabel]))
	}
	if l.sourced {
		cloud.Sources = append(cloud.Sources, whole(v[pointSources]))
	}
}

// whole returns a number that fits 16 bits, and otherwise 0: -1 is a common value for points without label.
func whole(v float64) uint16 {
	if v >= 0 && v <= math.MaxUint16 {
		return uint16(v)
	}
	return 0
}

// finite reports whether all coordinates are finite. The difference of an infinite value, or of
// NaN, and itself is NaN.
func finite(p [3]float32) bool { return p[0]-p[0] == 0 && p[1]-p[1] == 0 && p[2]-p[2] == 0 }

// plain reports whether positions are little-endian floats, colours are uchars and nothing else is
// present, as in nearly all captures.
func (l *layout) plain(format Format) bool {
	if format != BinaryLittleEndian || !l.colored || l.labelled || l.sourced {
		return false
	}
	for i, c := range l.columns[:pointLabel] {
		if i < colorRed && c.kind != float32Scalar || i >= colorRed && c.kind != uint8Scalar {
			return false
		}
	}
	return true
}

// appendPlain adds whole vertices of the plain layout.
func (l *layout) appendPlain(cloud *Cloud, data []byte, stride int) {
	x, y, z := l.columns[positionX].offset, l.columns[positionY].offset, l.columns[positionZ].offset
	r, g, b := l.columns[colorRed].offset, l.columns[colorGreen].offset, l.columns[colorBlue].offset
	for ; len(data) >= stride; data = data[stride:] {
		v := data[:stride]
		p := [3]float32{
			math.Float32frombits(binary.LittleEndian.Uint32(v[x:])),
			math.Float32frombits(binary.LittleEndian.Uint32(v[y:])),
			math.Float32frombits(binary.LittleEndian.Uint32(v[z:])),
		}
		if finite(p) {
			cloud.Append(p, [3]uint8{v[r], v[g], v[b]})
		}
	}
}

// appendFixed adds whole vertices of any layout without lists.
func (l *layout) appendFixed(cloud *Cloud, data []byte, stride int, order binary.ByteOrder) {
	var values row
	for ; len(data) >= stride; data = data[stride:] {
		for i := range l.columns {
			if c := &l.columns[i]; c.property >= 0 {
				values[i] = c.kind.decode(data[c.offset:stride], order)
			}
		}
		l.appendTo(cloud, &values)
	}
}

// decode decodes one number.
func (s scalar) decode(data []byte, order binary.ByteOrder) float64 {
	switch s {
	case int8Scalar:
		return float64(int8(data[0]))
	case uint8Scalar:
		return float64(data[0])
	case int16Scalar:
		return float64(int16(order.Uint16(data)))
	case uint16Scalar:
		return float64(order.Uint16(data))
	case int32Scalar:
		return float64(int32(order.Uint32(data)))
	case uint32Scalar:
		return float64(order.Uint32(data))
	case float32Scalar:
		return float64(math.Float32frombits(order.Uint32(data)))
	default:
		return math.Float64frombits(order.Uint64(data))
	}
}
