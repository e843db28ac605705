package synthetic

import "math"

// posture is the posture of the body at one instant.
type posture struct {
	root motion // of the pelvis, relative to rest
	// of each joint, in the axes of the body at rest; rotations of the legs follow from the root
	turns  [boneCount]quaternion
	breath float64 // -1 exhaled, 1 inhaled
	blink  bool
}

// lungs is the point from which the rib cage expands.
var lungs = vector{0, 1.22, -0.03}

// swelling returns the stretch of a bone by breathing: 3 % of a chest of 22 cm are 7 mm between
// exhaled and inhaled.
func (p *posture) swelling(b bone) vector {
	switch b {
	case chest:
		return vector{1 + 0.005*p.breath, 1 + 0.002*p.breath, 1 + 0.015*p.breath}
	case spine:
		return vector{1 + 0.003*p.breath, 1, 1 + 0.012*p.breath}
	}
	return vector{1, 1, 1}
}

// bones computes the motions of all bones, including the legs.
func (p *posture) bones() [boneCount]motion {
	p.plant(leftThigh)
	p.plant(rightThigh)
	var bones [boneCount]motion
	bones[pelvis] = p.root
	for b := pelvis + 1; b < boneCount; b++ {
		bones[b] = bones[joints[b].parent].after(about(joints[b].pivot, p.turns[b]))
	}
	return bones
}

// fill computes the motions of all points.
func (p *posture) fill(out *palette) {
	bones := p.bones()
	for step := range steps + 1 {
		out[step] = p.root.matrix(lungs, vector{1, 1, 1})
	}
	for b := pelvis + 1; b < boneCount; b++ {
		j := &joints[b]
		from, to := p.swelling(j.parent), p.swelling(b)
		for step := range steps + 1 {
			share := float64(step) / steps
			moved := bones[j.parent].after(about(j.pivot, p.turns[b].part(share)))
			out[int(b)*(steps+1)+step] = moved.matrix(lungs, from.toward(to, share))
		}
	}
}

// overreach returns the distance by which the longer leg would miss its foot, less 1.2 mm. Lowered
// by this distance, the body stands on one nearly straight leg, and the other knee is bent.
func (p *posture) overreach() float64 {
	most := math.Inf(-1)
	for _, thigh := range [2]bone{leftThigh, rightThigh} {
		hip, knee, ankle := joints[thigh].pivot, joints[thigh+1].pivot, joints[thigh+2].pivot
		reach := knee.sub(hip).length() + ankle.sub(knee).length()
		most = max(most, p.root.apply(hip).sub(ankle).length()-reach)
	}
	return most + 0.0012
}

// plant bends a leg so that its foot stays at its place at rest, flat on the floor: two bones of
// known length between two known points, with the knee in front.
func (p *posture) plant(thigh bone) {
	shin, foot := thigh+1, thigh+2
	hip, knee, ankle := joints[thigh].pivot, joints[shin].pivot, joints[foot].pivot
	upper, lower := knee.sub(hip).length(), ankle.sub(knee).length()
	from := p.root.apply(hip)
	line := ankle.sub(from)
	distance := min(line.length(), upper+lower-1e-4)
	down := line.unit()
	// The law of cosines gives the angle at the hip between the line to the ankle and the thigh.
	cos := (upper*upper + distance*distance - lower*lower) / (2 * upper * distance)
	sin := math.Sqrt(max(0, 1-cos*cos))
	ahead := vector{math.Copysign(0.12, hip[0]), 0, 1} // feet and knees point slightly outwards
	ahead = ahead.sub(down.scale(ahead.dot(down))).unit()
	bent := from.add(down.scale(upper * cos)).add(ahead.scale(upper * sin))

	side := vector{1, 0, 0}
	thighTurn := turning(knee.sub(hip), side, bent.sub(from), side)
	shinTurn := turning(ankle.sub(knee), side, ankle.sub(bent), side)
	p.turns[thigh] = p.root.turn.inverse().times(thighTurn)
	p.turns[shin] = thighTurn.inverse().times(shinTurn)
	p.turns[foot] = shinTurn.inverse()
}
