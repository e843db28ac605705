package glb

import (
	"fmt"
	"math"

	"github.com/qmuntal/gltf"
	"github.com/qmuntal/gltf/modeler"
)

// Limits on a mesh, so that a small file cannot refer to the same data many times.
const (
	maxTargets   = 16
	maxVertices  = 4 << 20 // all parts together, counted as often as the scene shows them
	maxTriangles = 8 << 20
)

// part is a primitive of a mesh shown by a node.
type part struct {
	node      int
	skin      *skin // nil for none
	triangles [][3]uint32
	positions [][3]float32
	targets   [][][3]float32 // by morph target; nil for a target without positions
	joints    [][4]uint16
	weights   [][4]float32
	first     int // index of its first vertex in the scene
	paint     *paint
}

// skin contains the joints that move the vertices of parts.
type skin struct {
	joints  []int
	inverse []affine
}

// newParts reads the parts that the scene shows.
func newParts(doc *gltf.Document, s *scene) ([]part, int, error) {
	shown, err := visible(doc)
	if err != nil {
		return nil, 0, err
	}
	painter := newPainter(doc)
	var parts []part
	vertices, triangles := 0, 0
	for i, n := range doc.Nodes {
		if n.Mesh == nil || !shown[i] {
			continue
		}
		var worn *skin
		if n.Skin != nil {
			if worn, err = newSkin(doc, *n.Skin, len(s.joints)); err != nil {
				return nil, 0, err
			}
		}
		for k, primitive := range doc.Meshes[*n.Mesh].Primitives {
			p := part{node: i, skin: worn, first: vertices}
			if err := p.read(doc, primitive); err != nil {
				return nil, 0, fmt.Errorf("mesh %d, primitive %d: %w", *n.Mesh, k, err)
			}
			if p.paint, err = painter.of(primitive, len(p.positions)); err != nil {
				return nil, 0, fmt.Errorf("mesh %d, primitive %d: %w", *n.Mesh, k, err)
			}
			vertices, triangles = vertices+len(p.positions), triangles+len(p.triangles)
			if vertices > maxVertices || triangles > maxTriangles {
				return nil, 0, fmt.Errorf(
					"%w: more than %d vertices or %d triangles",
					ErrUnsupported,
					maxVertices,
					maxTriangles,
				)
			}
			parts = append(parts, p)
		}
	}
	if triangles == 0 {
		return nil, 0, fmt.Errorf("%w: no triangles", ErrFile)
	}
	return parts, vertices, nil
}

// visible reports for each node whether the scene shows it: nodes below the roots of the default
// scene, or all nodes without a default scene.
func visible(doc *gltf.Document) ([]bool, error) {
	shown := make([]bool, len(doc.Nodes))
	if doc.Scene == nil {
		for i := range shown {
			shown[i] = true
		}
		return shown, nil
	}
	chosen, err := at(doc.Scenes, *doc.Scene, "scene")
	if err != nil {
		return nil, err
	}
	open := append([]int{}, chosen.Nodes...)
	for len(open) > 0 {
		i := open[len(open)-1]
		open = open[:len(open)-1]
		if _, err := at(doc.Nodes, i, "node"); err != nil {
			return nil, err
		}
		if !shown[i] {
			shown[i] = true
			open = append(open, doc.Nodes[i].Children...)
		}
	}
	return shown, nil
}

func newSkin(doc *gltf.Document, index, nodes int) (*skin, error) {
	found, err := at(doc.Skins, index, "skin")
	if err != nil {
		return nil, err
	}
	s := &skin{joints: found.Joints, inverse: make([]affine, len(found.Joints))}
	for i, j := range found.Joints {
		if j < 0 || j >= nodes {
			return nil, fmt.Errorf("%w: skin %d has joint %d, expected one of %d nodes", ErrFile, index, j, nodes)
		}
		s.inverse[i] = unmoved
	}
	if found.InverseBindMatrices == nil {
		return s, nil
	}
	only, a, err := accessor(doc, *found.InverseBindMatrices)
	if err != nil {
		return nil, err
	}
	matrices, err := modeler.ReadInverseBindMatrices(only, a, nil)
	if err != nil || len(matrices) < len(s.joints) {
		return nil, fmt.Errorf(
			"%w: %d inverse bind matrices for %d joints: %v",
			ErrFile,
			len(matrices),
			len(s.joints),
			err,
		)
	}
	for i := range s.inverse {
		for row := range 3 {
			for column := range 4 {
				s.inverse[i][row][column] = float64(matrices[i][row][column])
			}
		}
	}
	return s, nil
}

// read reads the vertices and triangles of a primitive.
func (p *part) read(doc *gltf.Document, primitive *gltf.Primitive) error {
	index, ok := primitive.Attributes[gltf.POSITION]
	if !ok {
		return fmt.Errorf("%w: no positions", ErrFile)
	}
	only, a, err := accessor(doc, index)
	if err != nil {
		return err
	}
	if p.positions, err = modeler.ReadPosition(only, a, nil); err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	for _, target := range primitive.Targets {
		only, moved, err := named(doc, target, gltf.POSITION, len(p.positions))
		if err != nil {
			return err
		}
		var positions [][3]float32
		if moved != nil {
			if positions, err = modeler.ReadPosition(only, moved, nil); err != nil {
				return fmt.Errorf("%w: %w", ErrFile, err)
			}
		}
		p.targets = append(p.targets, positions)
	}
	if p.skin != nil {
		if err := p.readSkin(doc, primitive); err != nil {
			return err
		}
	}
	return p.readTriangles(doc, primitive)
}

func (p *part) readSkin(doc *gltf.Document, primitive *gltf.Primitive) error {
	ofJoints, joints, err := named(doc, primitive.Attributes, gltf.JOINTS_0, len(p.positions))
	if err != nil {
		return err
	}
	ofWeights, weights, err := named(doc, primitive.Attributes, gltf.WEIGHTS_0, len(p.positions))
	if err != nil {
		return err
	}
	if joints == nil || weights == nil {
		return fmt.Errorf("%w: a skin, but no joints or weights of vertices", ErrFile)
	}
	if _, more := primitive.Attributes["JOINTS_1"]; more {
		return fmt.Errorf("%w: vertices with more than four joints", ErrUnsupported)
	}
	if p.joints, err = modeler.ReadJoints(ofJoints, joints, nil); err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	if p.weights, err = modeler.ReadWeights(ofWeights, weights, nil); err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	for i, four := range p.joints {
		sum := float32(0)
		for k, j := range four {
			if int(j) >= len(p.skin.joints) {
				return fmt.Errorf("%w: vertex %d is moved by joint %d of %d", ErrFile, i, j, len(p.skin.joints))
			}
			if w := p.weights[i][k]; !(w >= 0 && w <= 1.01) {
				return fmt.Errorf("%w: vertex %d is moved with weight %g, expected 0 to 1", ErrFile, i, w)
			}
			sum += p.weights[i][k]
		}
		if sum < 1e-6 {
			return fmt.Errorf("%w: vertex %d is moved by no joint", ErrFile, i)
		}
		// Exporters that keep the four largest of more weights leave sums below 1, which would move
		// vertices towards the origin.
		for k := range four {
			p.weights[i][k] /= sum
		}
	}
	return nil
}

// readTriangles reads lists, strips and fans. Points and lines have no surface.
func (p *part) readTriangles(doc *gltf.Document, primitive *gltf.Primitive) error {
	var indices []uint32
	if primitive.Indices != nil {
		only, a, err := accessor(doc, *primitive.Indices)
		if err != nil {
			return err
		}
		if indices, err = modeler.ReadIndices(only, a, nil); err != nil {
			return fmt.Errorf("%w: %w", ErrFile, err)
		}
	} else {
		for i := range p.positions {
			indices = append(indices, uint32(i))
		}
	}
	for _, i := range indices {
		if int(i) >= len(p.positions) {
			return fmt.Errorf("%w: a triangle has vertex %d of %d", ErrFile, i, len(p.positions))
		}
	}
	for i := 0; i+2 < len(indices); i++ {
		switch primitive.Mode {
		case gltf.PrimitiveTriangles:
			if i%3 == 0 {
				p.triangles = append(p.triangles, [3]uint32(indices[i:i+3]))
			}
		case gltf.PrimitiveTriangleStrip:
			p.triangles = append(p.triangles, [3]uint32(indices[i:i+3]))
		case gltf.PrimitiveTriangleFan:
			p.triangles = append(p.triangles, [3]uint32{indices[0], indices[i+1], indices[i+2]})
		}
	}
	return nil
}

// place moves the vertices of a part to their positions in a pose.
func (p *part) place(now *pose, vertices [][3]float64) {
	weights := now.joints[p.node].weights
	var moves []affine
	if p.skin != nil {
		moves = make([]affine, len(p.skin.joints))
		for i, j := range p.skin.joints {
			moves[i] = now.global[j].after(&p.skin.inverse[i])
		}
	}
	for i, position := range p.positions {
		v := [3]float64{float64(position[0]), float64(position[1]), float64(position[2])}
		for k, target := range p.targets {
			if target == nil || weights[k] == 0 {
				continue
			}
			for axis := range 3 {
				v[axis] += weights[k] * float64(target[i][axis])
			}
		}
		if p.skin == nil {
			vertices[p.first+i] = now.global[p.node].apply(v)
			continue
		}
		var sum [3]float64
		for k, j := range p.joints[i] {
			if w := float64(p.weights[i][k]); w > 0 {
				moved := moves[j].apply(v)
				for axis := range 3 {
					sum[axis] += w * moved[axis]
				}
			}
		}
		vertices[p.first+i] = sum
	}
}

// area returns the area of a triangle.
func area(a, b, c [3]float64) float64 {
	var u, v [3]float64
	for axis := range 3 {
		u[axis], v[axis] = b[axis]-a[axis], c[axis]-a[axis]
	}
	x, y, z := u[1]*v[2]-u[2]*v[1], u[2]*v[0]-u[0]*v[2], u[0]*v[1]-u[1]*v[0]
	return math.Sqrt(x*x+y*y+z*z) / 2
}
