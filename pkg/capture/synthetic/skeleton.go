package synthetic

import "math"

// bone is a rigid part of the body. A bone follows its parent in the order.
type bone uint8

const (
	pelvis bone = iota
	spine
	chest
	neck
	head
	jaw
	leftUpperArm
	leftForearm
	leftWrist // lower half of the forearm, which twists
	leftHand
	leftFingers
	leftThigh
	leftShin
	leftFoot
	rightUpperArm
	rightForearm
	rightWrist
	rightHand
	rightFingers
	rightThigh
	rightShin
	rightFoot
	boneCount
)

// rightward is the distance between a left bone and its right counterpart.
const rightward = rightUpperArm - leftUpperArm

// The left side of the skeleton at rest, in metres: a person of 1.75 m with shoes, upright, facing
// +z, arms held 40° away from the body so that its parts are separate. The person's left is at +x.
var (
	waist         = vector{0, 1.04, -0.01}
	midriff       = vector{0, 1.19, -0.015}
	neckBase      = vector{0, 1.47, -0.03}
	headBase      = vector{0, 1.55, -0.005}
	jawHinge      = vector{0, 1.60, 0}
	mouth         = vector{0, 1.5655, 0.09}
	armDirection  = vector{math.Sin(40 * degree), -math.Cos(40 * degree), 0}
	armAxis       = vector{math.Cos(40 * degree), math.Sin(40 * degree), 0} // axis of the elbows
	leftShoulder  = vector{0.175, 1.415, -0.025}
	leftElbow     = leftShoulder.add(armDirection.scale(0.285))
	leftMidArm    = leftElbow.add(armDirection.scale(0.14))
	leftWristBase = leftElbow.add(armDirection.scale(0.255))
	leftKnuckles  = leftWristBase.add(armDirection.scale(0.088))
	leftHip       = vector{0.09, 0.92, 0}
	leftKnee      = vector{0.10, 0.50, 0.012}
	leftAnkle     = vector{0.105, 0.085, -0.02}
)

// joint connects a bone to its parent: it rotates about the pivot, and the skin follows gradually
// across a zone.
type joint struct {
	parent bone
	pivot  vector
	// The skin's share of the joint's rotation rises from 0 to 1 from half before the zone's centre
	// to half after it.
	centre, direction vector
	half              float64
	// Points on the parent follow fully up to this distance from the centre, and not at all from
	// twice the distance on.
	reach float64
}

var joints = skeleton()

func skeleton() [boneCount]joint {
	up, down := vector{0, 1, 0}, vector{0, -1, 0}
	all := [boneCount]joint{
		spine: {pelvis, waist, waist, up, 0.06, 1},
		chest: {spine, midriff, midriff, up, 0.07, 1},
		neck:  {chest, neckBase, neckBase.add(vector{0, 0.01, 0}), up, 0.03, 0.06},
		head:  {neck, headBase, headBase, vector{0, 0.8, 0.6}, 0.03, 1},
		jaw:   {head, jawHinge, mouth, down, 0.004, 0.035},

		leftUpperArm: {
			chest,
			leftShoulder,
			leftShoulder,
			vector{math.Cos(30 * degree), -math.Sin(30 * degree), 0},
			0.05,
			0.06,
		},
		leftForearm: {leftUpperArm, leftElbow, leftElbow, armDirection, 0.04, 1},
		leftWrist:   {leftForearm, leftMidArm, leftMidArm, armDirection, 0.09, 1},
		leftHand:    {leftWrist, leftWristBase, leftWristBase, armDirection, 0.02, 1},
		leftFingers: {leftHand, leftKnuckles, leftKnuckles, armDirection, 0.015, 0.03},

		leftThigh: {pelvis, leftHip, vector{0.1, 0.885, 0}, down, 0.06, 0.08},
		leftShin:  {leftThigh, leftKnee, leftKnee, down, 0.05, 1},
		leftFoot:  {leftShin, leftAnkle, leftAnkle, down, 0.02, 1},
	}
	for left := leftUpperArm; left <= leftFoot; left++ {
		j := all[left]
		if j.parent >= leftUpperArm {
			j.parent += rightward
		}
		j.pivot, j.centre, j.direction = j.pivot.mirrored(), j.centre.mirrored(), j.direction.mirrored()
		all[left+rightward] = j
	}
	return all
}

// share returns the share with which a point on the bone, or on its parent, follows the joint.
func (j *joint) share(p vector) float64 {
	return ramp(-j.half, j.half, p.sub(j.centre).dot(j.direction))
}

// attach returns the joint that moves a point of a bone's surface, and the share of its rotation.
func attach(owner bone, p vector) (bone, float64) {
	if owner != pelvis {
		if share := joints[owner].share(p); share < 1 {
			return owner, share
		}
	}
	child, most := owner, 0.0
	for b := owner + 1; b < boneCount; b++ {
		j := &joints[b]
		if j.parent != owner {
			continue
		}
		share := j.share(p) * (1 - ramp(j.reach, 2*j.reach, p.sub(j.centre).length()))
		if share > most {
			child, most = b, share
		}
	}
	if most > 0 {
		return child, most
	}
	return owner, 1
}

// steps is the number of equal parts of a joint's rotation for the skin. An elbow bent by 100°
// turns by 8° from part to part, spread over 8 cm: an edge of under 1 mm on a 5 cm wide arm.
const steps = 12

// palette contains all motions of points: for each bone its joint's rotation in 0, 1/12 … 12/12.
type palette [int(boneCount) * (steps + 1)]matrix

// entry returns the index in the palette.
func entry(b bone, share float64) uint16 {
	return uint16(int(b)*(steps+1) + int(math.Round(share*steps)))
}
