package synthetic

import "github.com/volsfu/volsfu/pkg/pointcloud"

// Labels of the figure's points, by body part.
const (
	LabelHead uint16 = iota + 1 // with the neck
	LabelTorso
	LabelLeftArm // down to the wrist
	LabelRightArm
	LabelLeftHand
	LabelRightHand
	LabelLeftLeg // with the foot
	LabelRightLeg
)

// Parts returns the labelled body parts, for a tiling by label.
func Parts() []pointcloud.Part {
	return []pointcloud.Part{
		{Name: "head", Labels: []uint16{LabelHead}},
		{Name: "torso", Labels: []uint16{LabelTorso}},
		{Name: "left arm", Labels: []uint16{LabelLeftArm}},
		{Name: "right arm", Labels: []uint16{LabelRightArm}},
		{Name: "left hand", Labels: []uint16{LabelLeftHand}},
		{Name: "right hand", Labels: []uint16{LabelRightHand}},
		{Name: "left leg", Labels: []uint16{LabelLeftLeg}},
		{Name: "right leg", Labels: []uint16{LabelRightLeg}},
	}
}

// label returns the label of a bone's surface.
func (b bone) label() uint16 {
	switch b {
	case neck, head, jaw:
		return LabelHead
	case leftUpperArm, leftForearm, leftWrist:
		return LabelLeftArm
	case rightUpperArm, rightForearm, rightWrist:
		return LabelRightArm
	case leftHand, leftFingers:
		return LabelLeftHand
	case rightHand, rightFingers:
		return LabelRightHand
	case leftThigh, leftShin, leftFoot:
		return LabelLeftLeg
	case rightThigh, rightShin, rightFoot:
		return LabelRightLeg
	default:
		return LabelTorso
	}
}

// Cameras is the number of cameras around the figure, two in front and two behind.
const Cameras = 4

// cameras contains the directions from the figure to its cameras, which are above its head in the
// quadrants of pointcloud.Tiling, in their order.
var cameras = [Cameras]vector{
	vector{1, 0.5, 1}.unit(), vector{-1, 0.5, 1}.unit(), vector{1, 0.5, -1}.unit(), vector{-1, 0.5, -1}.unit(),
}

// grazing is the cosine of the largest angle at which a surface is seen. Depth cameras measure no
// valid depth on surfaces turned away by more than 75°.
const grazing = 0.26

// seenBy returns the set of cameras that a surface with the given normal faces, at least the camera
// that it faces most. Occlusion is ignored.
func seenBy(normal vector) uint16 {
	set, best := uint16(0), 0
	for i, camera := range cameras {
		if normal.dot(camera) > grazing {
			set |= 1 << i
		}
		if normal.dot(camera) > normal.dot(cameras[best]) {
			best = i
		}
	}
	if set == 0 {
		set = 1 << best
	}
	return set
}
