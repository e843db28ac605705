package synthetic

// armPose is the pose of an arm, in degrees from hanging straight down, palm towards the thigh and
// thumb forward.
type armPose struct {
	flex   float64 // upper arm forwards
	abduct float64 // upper arm away from the body
	inward float64 // upper arm about its own axis, so that a bent forearm swings in front of the body
	elbow  float64 // bend
	twist  float64 // forearm, palm down; negative: palm up
	wrist  float64 // bend towards the palm
	curl   float64 // fingers towards the palm
}

func (a armPose) toward(b armPose, w float64) armPose {
	return armPose{
		mix(a.flex, b.flex, w), mix(a.abduct, b.abduct, w), mix(a.inward, b.inward, w), mix(a.elbow, b.elbow, w),
		mix(a.twist, b.twist, w), mix(a.wrist, b.wrist, w), mix(a.curl, b.curl, w),
	}
}

// The poses of people in a conversation.
var (
	hanging   = armPose{flex: 2, abduct: 9, inward: 12, elbow: 14, twist: 18, wrist: 6, curl: 24}
	loose     = armPose{flex: 8, abduct: 11, inward: 18, elbow: 30, twist: 10, wrist: 4, curl: 28}
	offering  = armPose{flex: 22, abduct: 14, inward: 2, elbow: 82, twist: -55, wrist: -8, curl: 14}
	measuring = armPose{flex: 24, abduct: 16, inward: 14, elbow: 88, twist: 0, wrist: -6, curl: 12}
	clasping  = armPose{flex: 16, abduct: 12, inward: 36, elbow: 80, twist: 18, wrist: 8, curl: 34}
	counting  = armPose{flex: 30, abduct: 18, inward: 20, elbow: 104, twist: 10, wrist: -10, curl: 55}
	stopping  = armPose{flex: 34, abduct: 20, inward: 8, elbow: 108, twist: 62, wrist: -38, curl: 6}
)

// gestures pairs a pose of the left arm with a pose of the right arm. In more than half of them one
// arm hangs down.
var gestures = [...][2]armPose{
	{hanging, hanging}, {hanging, loose}, {loose, hanging}, {hanging, offering}, {offering, offering},
	{
		measuring,
		measuring,
	}, {clasping, clasping}, {hanging, counting}, {loose, measuring}, {measuring, stopping}, {clasping, offering},
}

// moveArms moves from gesture to gesture. While the person speaks, the raised hands beat time.
func (p *posture) moveArms(seed uint64, t, talk float64) {
	slot, progress := schedule(seed, gestureTime, t, 4.2, 1.3)
	pick := func(slot int64) [2]armPose {
		return gestures[int(hash(seed, gestureChoice, slot)*float64(len(gestures)))]
	}
	before, after := pick(slot-1), pick(slot)
	for side, shoulder := range [2]bone{leftUpperArm, rightUpperArm} {
		pose := before[side].toward(after[side], progress)
		pose.drift(seed, armDrift+uint64(10*side), t, talk)
		pose.apply(p, shoulder)
	}
}

// drift adds the small continuous movements of an arm. The more the elbow is bent, the more the
// hand moves during speech.
func (a *armPose) drift(seed, channel uint64, t, talk float64) {
	beat := talk * ramp(25, 80, a.elbow)
	a.flex += 1.5*wander(seed, channel, 0.4*t) + 5*beat*wander(seed, channel+1, 1.3*t)
	a.abduct += 1*wander(seed, channel+2, 0.5*t) + 3*beat*wander(seed, channel+3, 1.1*t)
	a.elbow += 2*wander(seed, channel+4, 0.5*t) + 11*beat*wander(seed, channel+5, 1.7*t)
	a.twist += 4*wander(seed, channel+6, 0.4*t) + 12*beat*wander(seed, channel+7, 1.2*t)
	a.wrist += 3*wander(seed, channel+8, 0.6*t) + 12*beat*wander(seed, channel+5, 1.7*t-0.3)
	a.curl += 5*wander(seed, channel+9, 0.5*t) + 8*beat*wander(seed, channel+9, 1.5*t+30)
}

// apply rotates the joints of one arm. The axes are those of the left arm at rest.
func (a armPose) apply(p *posture, shoulder bone) {
	x, y, z := vector{1, 0, 0}, vector{0, 1, 0}, vector{0, 0, 1}
	turns := [...]quaternion{
		rotation(x, -a.flex*degree).
			times(rotation(z, a.abduct*degree)).
			times(rotation(y, -a.inward*degree)).
			times(rotation(z, -40*degree)), // from rest to hanging
		rotation(armAxis, -a.elbow*degree),
		rotation(armDirection, a.twist*degree),
		rotation(z, -a.wrist*degree),
		rotation(z, -a.curl*degree),
	}
	for i, turn := range turns {
		if shoulder == rightUpperArm {
			turn = turn.mirrored()
		}
		p.turns[shoulder+bone(i)] = turn
	}
}
