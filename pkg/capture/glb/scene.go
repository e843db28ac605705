package glb

import (
	"fmt"
	"math"
	"slices"

	"github.com/qmuntal/gltf"
)

// scene contains the nodes of a document and their animation.
type scene struct {
	joints   []joint
	order    []int // parents before their children
	channels []channel
	duration float64 // seconds, 0 without animation
}

// newScene reads the nodes and the first animation.
func newScene(doc *gltf.Document) (*scene, error) {
	s := &scene{joints: make([]joint, len(doc.Nodes))}
	for i, n := range doc.Nodes {
		made, err := newJoint(doc, n)
		if err != nil {
			return nil, fmt.Errorf("node %d: %w", i, err)
		}
		s.joints[i] = made
	}
	for i, n := range doc.Nodes {
		for _, child := range n.Children {
			if _, err := at(doc.Nodes, child, "node"); err != nil {
				return nil, err
			}
			if s.joints[child].parent >= 0 {
				return nil, fmt.Errorf("%w: node %d has two parents", ErrFile, child)
			}
			s.joints[child].parent = i
		}
	}
	for i := range s.joints {
		if s.joints[i].parent < 0 {
			s.order = append(s.order, i)
		}
	}
	for done := 0; done < len(s.order); done++ {
		s.order = append(s.order, doc.Nodes[s.order[done]].Children...)
	}
	if len(s.order) != len(doc.Nodes) {
		return nil, fmt.Errorf("%w: nodes are their own parents", ErrFile)
	}
	if len(doc.Animations) > 0 {
		var err error
		if s.channels, s.duration, err = newChannels(doc, doc.Animations[0], s.joints); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func newJoint(doc *gltf.Document, n *gltf.Node) (joint, error) {
	j := joint{parent: -1, translation: n.Translation, rotation: n.RotationOrDefault(), scale: n.ScaleOrDefault()}
	normalize(&j.rotation)
	if m := n.MatrixOrDefault(); m != gltf.DefaultMatrix {
		j.fixed = new(affine)
		for i := range 3 {
			for k := range 4 {
				j.fixed[i][k] = m[4*k+i]
			}
		}
	}
	local := j.local()
	for _, row := range local {
		for _, v := range row {
			if !(math.Abs(v) <= 1e6) {
				return joint{}, fmt.Errorf(
					"%w: %g in a transformation, expected a number of at most a million",
					ErrFile,
					v,
				)
			}
		}
	}
	if n.Mesh == nil {
		return j, nil
	}
	mesh, err := at(doc.Meshes, *n.Mesh, "mesh")
	if err != nil {
		return joint{}, err
	}
	targets := 0
	for _, p := range mesh.Primitives {
		targets = max(targets, len(p.Targets))
	}
	if targets > maxTargets {
		return joint{}, fmt.Errorf("%w: %d morph targets, expected at most %d", ErrUnsupported, targets, maxTargets)
	}
	j.weights = make([]float64, targets)
	copy(j.weights, mesh.Weights)
	copy(j.weights, n.Weights)
	return j, nil
}

// pose is the state of a scene at one time.
type pose struct {
	joints []joint
	global []affine
}

// at sets the pose of the scene at a time.
func (s *scene) at(time float64, p *pose) {
	if p.joints == nil {
		p.global = make([]affine, len(s.joints))
		p.joints = slices.Clone(s.joints)
		for i := range p.joints {
			p.joints[i].weights = slices.Clone(s.joints[i].weights)
		}
	}
	for i := range s.channels {
		c := &s.channels[i]
		p.joints[c.node].fixed = nil // an animated node has no matrix
		c.move(&p.joints[c.node], time)
	}
	for _, i := range s.order {
		local := p.joints[i].local()
		if parent := p.joints[i].parent; parent >= 0 {
			p.global[i] = p.global[parent].after(&local)
		} else {
			p.global[i] = local
		}
	}
}
