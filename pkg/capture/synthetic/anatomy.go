package synthetic

import "math"

// material is the material of a part of the surface.
type material uint8

const (
	skin material = iota
	eyeball
	hair
	cloth // the shirt
	collar
	trousers
	shoe
)

func ball(b bone, m material, blend float64, centre vector, radius float64) *solid {
	return ellipsoid(b, m, blend, centre, vector{radius, radius, radius})
}

func ellipsoid(b bone, m material, blend float64, centre, radii vector) *solid {
	return &solid{
		bone: b, material: m, blend: blend, origin: centre, axes: [3]vector{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
		scale: vector{
			1 / radii[0],
			1 / radii[1],
			1 / radii[2],
		}, thinnest: min(radii[0], radii[1], radii[2]), widest: max(radii[0], radii[1], radii[2]),
	}
}

func cone(b bone, m material, blend float64, from, to vector, r0, r1 float64) *solid {
	side := vector{1, 0, 0}
	if along := to.sub(from); math.Abs(along[0]) > 0.9*along.length() {
		side = vector{0, 0, 1} // any vector that is not parallel
	}
	return flatCone(b, m, blend, from, to, r0, r1, side, 1, 1)
}

// flatCone returns a cone stretched by the factor wide towards side, and by the factor thin
// orthogonally to side.
func flatCone(
	b bone,
	m material,
	blend float64,
	from, to vector,
	r0, r1 float64,
	side vector,
	wide, thin float64,
) *solid {
	along := to.sub(from)
	first := along.unit()
	third := first.cross(side).unit()
	return &solid{
		bone: b, material: m, blend: blend, origin: from, axes: [3]vector{first, third.cross(first), third},
		scale: vector{1, 1 / wide, 1 / thin}, thinnest: min(wide, thin), widest: max(wide, thin),
		length: along.length(), r0: r0, r1: r1,
	}
}

func (s *solid) mirrored() *solid {
	twin := *s
	if twin.bone >= leftUpperArm {
		twin.bone += rightward
	}
	twin.origin = twin.origin.mirrored()
	for axis := range twin.axes {
		twin.axes[axis] = twin.axes[axis].mirrored()
	}
	return &twin
}

// both returns the solids of the left side and their mirror images.
func both(left ...*solid) []*solid {
	all := left
	for _, s := range left {
		all = append(all, s.mirrored())
	}
	return all
}

// newBody returns the body at rest. The measures, in metres, are typical of an adult of 1.75 m.
func newBody(style hairStyle) field {
	body := field{headGroup(), eyeGroup(), hairGroup(style), shirtGroup(), collarGroup(), trouserGroup(), shoeGroup()}
	left := handGroup()
	right := group{}
	for _, s := range left.solids {
		right.solids = append(right.solids, s.mirrored())
	}
	return append(body, left, right)
}

func headGroup() group {
	solids := []*solid{
		cone(neck, skin, 0, vector{0, 1.44, -0.035}, vector{0, 1.57, -0.015}, 0.060, 0.054),
		ellipsoid(head, skin, 0.03, vector{0, 1.645, -0.012}, vector{0.075, 0.098, 0.095}),        // cranium
		ellipsoid(head, skin, 0.03, vector{0, 1.608, 0.030}, vector{0.060, 0.082, 0.064}),         // face
		ellipsoid(head, skin, 0.02, vector{0, 1.668, 0.060}, vector{0.052, 0.030, 0.031}),         // forehead
		ellipsoid(jaw, skin, 0.02, vector{0, 1.536, 0.070}, vector{0.021, 0.018, 0.018}),          // chin
		ellipsoid(head, skin, 0.02, vector{0, 1.575, 0.076}, vector{0.027, 0.022, 0.018}),         // around the mouth
		cone(head, skin, 0.008, vector{0, 1.640, 0.090}, vector{0, 1.606, 0.108}, 0.0075, 0.0105), // nose
		ellipsoid(head, skin, 0.006, vector{0, 1.5700, 0.0905}, vector{0.020, 0.0050, 0.0070}),    // lips
		ellipsoid(jaw, skin, 0.006, vector{0, 1.5610, 0.0895}, vector{0.017, 0.0055, 0.0070}),
	}
	solids = append(solids, both(
		cone(jaw, skin, 0.03, vector{0.046, 1.580, 0.008}, vector{0.014, 1.538, 0.066}, 0.017, 0.014),
		ellipsoid(head, skin, 0.02, vector{0.040, 1.606, 0.062}, vector{0.022, 0.018, 0.020}),           // cheekbones
		cone(head, skin, 0.012, vector{0.014, 1.650, 0.088}, vector{0.044, 1.648, 0.070}, 0.008, 0.008), // brows
		ball(head, skin, 0.005, vector{0.0105, 1.602, 0.099}, 0.0085),                                   // nostrils
		ellipsoid(head, skin, 0.004, vector{0.078, 1.618, -0.008}, vector{0.008, 0.030, 0.018}),         // ears
	)...)
	sockets := both(ellipsoid(head, skin, 0.010, vector{0.031, 1.630, 0.101}, vector{0.017, 0.010, 0.017}))
	return group{solids: solids, carved: sockets}
}

// eye is the centre of the left eyeball.
var eye = vector{0.031, 1.630, 0.0755}

const eyeRadius = 0.0125

func eyeGroup() group { return group{solids: both(ball(head, eyeball, 0, eye, eyeRadius))} }

// hairStyle is the length of the hair.
type hairStyle int

const (
	shortHair hairStyle = iota
	longHair
	hairStyles
)

// hairline is the lower end of the hair by the angle from the front in degrees: forehead, temples,
// before the ears, above the ears, nape.
var hairline = []knot{
	{0, 1.700},
	{30, 1.697},
	{52, 1.678},
	{66, 1.640},
	{76, 1.612},
	{88, 1.618},
	{97, 1.640},
	{112, 1.630},
	{132, 1.580},
	{180, 1.562},
}

// knot is one point of a piecewise linear curve.
type knot struct{ x, y float64 }

// interpolate returns the value of a curve, which is constant beyond its ends.
func interpolate(curve []knot, x float64) float64 {
	for i, k := range curve {
		if x > k.x {
			continue
		}
		if i == 0 {
			return k.y
		}
		before := curve[i-1]
		return mix(before.y, k.y, (x-before.x)/(k.x-before.x))
	}
	return curve[len(curve)-1].y
}

// azimuth returns the angle in degrees between the front and a position on the head, to either
// side: 0 to 180.
func azimuth(p vector) float64 { return math.Abs(math.Atan2(p[0], p[2]+0.01)) / degree }

func hairGroup(style hairStyle) group {
	g := group{solids: []*solid{
		ellipsoid(head, hair, 0, vector{0, 1.653, -0.017}, vector{0.084, 0.105, 0.104}),
		ellipsoid(head, hair, 0.03, vector{0.018, 1.712, 0.020}, vector{0.055, 0.040, 0.068}),
		ellipsoid(head, hair, 0.03, vector{0, 1.600, -0.050}, vector{0.066, 0.070, 0.062}),
	}}
	lowest := func(degrees float64) float64 { return interpolate(hairline, degrees) }
	if style == longHair {
		g.solids = append(g.solids,
			ellipsoid(head, hair, 0.03, vector{0, 1.600, -0.055}, vector{0.090, 0.115, 0.068}),
			ellipsoid(head, hair, 0.03, vector{0, 1.510, -0.080}, vector{0.085, 0.075, 0.046}),
		)
		lowest = func(degrees float64) float64 {
			return mix(interpolate(hairline, degrees), 1.46,
				ramp(70, 86, degrees))
		}
	}
	g.cut = func(p vector) float64 {
		// 0.8: the hairline is steeper than 45° at the temples; this keeps the cut close to a
		// distance.
		return 0.8 * (lowest(azimuth(p)) - p[1])
	}
	g.soft = 0.012
	return g
}

func shirtGroup() group {
	side, flat := vector{1, 0, 0}, 0.70
	solids := []*solid{
		flatCone(
			chest,
			cloth,
			0,
			vector{0, 1.35, -0.025},
			vector{0, 1.16, -0.012},
			0.150,
			0.140,
			side,
			1,
			flat,
		), // rib cage
		flatCone(spine, cloth, 0.03, vector{0, 1.16, -0.012}, vector{0, 1.04, -0.012}, 0.138, 0.134, side, 1, flat),
		flatCone(
			pelvis,
			cloth,
			0.01,
			vector{0, 1.04, -0.012},
			vector{0, 0.95, -0.012},
			0.136,
			0.138,
			side,
			1,
			flat-0.02,
		),
		cone(
			chest,
			cloth,
			0.06,
			vector{-0.130, 1.415, -0.030},
			vector{0.130, 1.415, -0.030},
			0.048,
			0.0479,
		), // shoulder girdle
	}
	solids = append(solids, both(
		cone(chest, cloth, 0.03, vector{0.03, 1.465, -0.04}, vector{0.140, 1.422, -0.035}, 0.042, 0.038), // trapezius
		ellipsoid(chest, cloth, 0.05, vector{0.072, 1.325, 0.036}, vector{0.072, 0.060, 0.042}),          // pectorals
		ellipsoid(
			chest,
			cloth,
			0.05,
			vector{0.080, 1.340, -0.090},
			vector{0.062, 0.080, 0.033},
		), // shoulder blades
		ball(leftUpperArm, cloth, 0.05, leftShoulder.add(vector{-0.002, -0.010, 0}), 0.050),
		cone(leftUpperArm, cloth, 0.03, leftShoulder.toward(leftElbow, 0.10), leftElbow, 0.048, 0.0395),
		cone(leftForearm, cloth, 0.003, leftElbow, leftElbow.toward(leftWristBase, 0.25), 0.0395, 0.0415),
		cone(leftForearm, cloth, 0.003, leftElbow.toward(leftWristBase, 0.25), leftMidArm, 0.0415, 0.037),
		cone(leftWrist, cloth, 0.003, leftMidArm, leftElbow.toward(leftWristBase, 0.86), 0.037, 0.0315),
		cone(
			leftWrist,
			cloth,
			0.003,
			leftElbow.toward(leftWristBase, 0.84),
			leftElbow.toward(leftWristBase, 0.93),
			0.0335,
			0.0332,
		), // cuff
	)...)
	return group{
		solids: solids,
		// The opening of the collar shows skin; below the belt the shirt is tucked in.
		carved: []*solid{cone(chest, cloth, 0.004, vector{0, 1.485, 0.035}, vector{0, 1.415, 0.095}, 0.040, 0.006)},
		cut:    func(p vector) float64 { return 0.95 - p[1] },
	}
}

func collarGroup() group {
	tilt := vector{0, 0.96, 0.28} // the top is lower in front
	return group{
		solids: []*solid{cone(chest, collar, 0, vector{0, 1.455, -0.030}, vector{0, 1.520, -0.036}, 0.076, 0.063)},
		carved: []*solid{cone(chest, cloth, 0.004, vector{0, 1.52, 0.035}, vector{0, 1.415, 0.090}, 0.032, 0.006)},
		cut:    func(p vector) float64 { return p.sub(vector{0, 1.508, -0.030}).dot(tilt) },
	}
}

// belt is the height of the upper edge of the trousers.
const belt = 1.005

func trouserGroup() group {
	calf := leftKnee.toward(leftAnkle, 0.30).add(vector{0, 0, -0.008})
	solids := []*solid{
		flatCone(
			pelvis,
			trousers,
			0,
			vector{0, 1.00, -0.010},
			vector{0, 0.94, -0.013},
			0.146,
			0.152,
			vector{1, 0, 0},
			1,
			0.71,
		),
	}
	solids = append(solids, both(
		ellipsoid(pelvis, trousers, 0.04, vector{0.066, 0.905, -0.056}, vector{0.070, 0.080, 0.058}), // seat
		cone(leftThigh, trousers, 0.04, leftHip, leftKnee, 0.081, 0.057),
		cone(leftShin, trousers, 0.004, leftKnee, calf, 0.058, 0.058),
		cone(leftShin, trousers, 0.004, calf, leftAnkle, 0.058, 0.050),
	)...)
	return group{solids: solids, cut: func(p vector) float64 { return max(0.048-p[1], p[1]-belt) }}
}

func shoeGroup() group {
	heel, toe := vector{0.107, 0.045, -0.050}, vector{0.128, 0.032, 0.130}
	return group{
		solids: both(
			flatCone(leftFoot, shoe, 0, heel, toe, 0.040, 0.036, vector{1, 0, 0}, 1.08, 1),
			ellipsoid(leftFoot, shoe, 0.03, vector{0.114, 0.058, 0.035}, vector{0.036, 0.035, 0.060}), // instep
			cone(
				leftFoot,
				shoe,
				0.02,
				vector{0.106, 0.05, -0.035},
				leftAnkle.add(vector{0, 0.01, -0.004}),
				0.043,
				0.040,
			),
		),
		cut: func(p vector) float64 { return -p[1] },
	}
}

// handGroup returns the left hand, thumb forward and palm towards the thigh.
func handGroup() group {
	forward := vector{0, 0, 1}
	palm := armDirection.cross(forward) // out of the palm, towards the body
	at := func(along, ahead, inward float64) vector {
		return leftWristBase.add(armDirection.scale(along)).add(forward.scale(ahead)).add(palm.scale(inward))
	}
	g := group{solids: []*solid{
		cone(leftWrist, skin, 0, at(-0.06, 0, 0), at(0, 0, 0), 0.027, 0.025),
		flatCone(leftHand, skin, 0.015, at(0.008, 0, 0), at(0.076, 0.002, 0.001), 0.023, 0.030, forward, 1.20, 0.46),
		cone(leftHand, skin, 0.012, at(0.022, 0.024, 0.006), at(0.060, 0.048, 0.012), 0.015, 0.0115), // thumb
		cone(leftHand, skin, 0.006, at(0.060, 0.048, 0.012), at(0.088, 0.055, 0.016), 0.0112, 0.0085),
	}}
	// Fingers from the index to the little finger: position of the knuckle across the hand, length,
	// radius.
	for _, f := range [4][3]float64{{0.028, 0.074, 0.0092}, {0.0095, 0.083, 0.0095}, {-0.009, 0.077, 0.0092},
		{-0.0265, 0.060, 0.0082}} {
		across, length, radius := f[0], f[1], f[2]
		middle := at(0.084+length*0.52, across*1.08, 0.004)
		g.solids = append(g.solids,
			cone(leftFingers, skin, 0.006, at(0.078, across, 0.001), middle, radius*1.05, radius),
			cone(leftFingers, skin, 0.003, middle, at(0.084+length, across*1.10, 0.018), radius, radius*0.82),
		)
	}
	return g
}
