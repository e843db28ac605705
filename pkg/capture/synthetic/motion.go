package synthetic

import "math"

// Hash channels of the motion. They differ from the channels of the looks.
const (
	swaySide uint64 = iota + 100
	swayAhead
	swayTurn
	swayWeight
	breathing
	gazeYaw
	gazePitch
	gazeTime
	headRoll
	headDrift
	headLift
	nodding
	nodTime
	talking
	jawMotion
	blinking
	gestureChoice
	gestureTime
	armDrift
)

// at returns the posture of a person at a time in seconds. Every part is smooth noise or a schedule
// derived from the seed, so that the motion never repeats, and any instant can be computed without
// earlier instants.
func at(seed uint64, t float64) posture {
	var p posture
	for b := range p.turns {
		p.turns[b] = noRotation
	}
	p.breath = math.Sin(2 * math.Pi * (0.24*t + 0.25*wander(seed, breathing, 0.1*t)))
	talk := smoothStep(0.5 + 1.5*wander(seed, talking, 0.13*t))
	yaw := p.lookAround(seed, t, talk)
	p.stand(seed, t, yaw)
	p.moveArms(seed, t, talk)
	p.blink = blinks(seed, t)
	return p
}

// schedule divides time into slots. After the change at the random start of slot k, progress has
// risen from 0 to 1.
func schedule(seed, channel uint64, t, period, change float64) (slot int64, progress float64) {
	slot = int64(math.Floor(t / period))
	start := (float64(slot) + 0.4*hash(seed, channel, slot)) * period
	return slot, smoothStep((t - start) / change)
}

// held returns a value from -1 to 1 that is constant for about a period and then changes quickly.
func held(seed, values, times uint64, t, period, change float64) float64 {
	slot, progress := schedule(seed, times, t, period, change)
	return 2*mix(hash(seed, values, slot-1), hash(seed, values, slot), progress) - 1
}

// stand shifts the weight from leg to leg, sways, and turns the trunk slightly with the gaze.
func (p *posture) stand(seed uint64, t, yaw float64) {
	weight := math.Tanh(1.8 * wander(seed, swayWeight, 0.09*t)) // rests on one leg, then on the other
	side := 0.030*weight + 0.008*wander(seed, swaySide, 0.35*t)
	ahead := 0.008 * wander(seed, swayAhead, 0.30*t)
	roll := 2.2 * weight
	turn := 3*wander(seed, swayTurn, 0.12*t) + 0.10*yaw
	centre := vector{0, 0.95, 0}
	pelvisTurn := rotation(vector{0, 1, 0}, turn*degree).times(rotation(vector{0, 0, 1}, roll*degree))
	p.root = about(centre, pelvisTurn)
	p.root.shift = p.root.shift.add(vector{side, 0, ahead})
	p.root.shift[1] -= p.overreach()

	pitch := 1.0 - 0.5*p.breath + 1.5*wander(seed, swayAhead, 0.21*t+50)
	p.turns[spine] = rotation(vector{0, 0, 1}, -0.7*roll*degree).times(rotation(vector{1, 0, 0}, pitch*degree))
	p.turns[chest] = rotation(vector{0, 1, 0}, 0.15*yaw*degree).times(rotation(vector{0, 0, 1}, -0.5*roll*degree))
}

// lookAround turns the head towards speakers, nods occasionally, and moves the jaw during speech. lookAround returns
// the gaze in degrees to the left.
func (p *posture) lookAround(seed uint64, t, talk float64) float64 {
	yaw := 22*held(seed, gazeYaw, gazeTime, t, 3.4, 0.55) + 3*wander(seed, headDrift, 0.6*t)
	pitch := 4*held(
		seed,
		gazePitch,
		gazeTime,
		t,
		3.4,
		0.55,
	) + 2.5*wander(
		seed,
		headLift,
		0.8*t,
	) + 2*talk*wander(
		seed,
		headLift,
		2.2*t+90,
	)
	roll := 4 * wander(seed, headRoll, 0.3*t)
	// One slot of three has a nod: three dips within one and a half seconds.
	if slot, _ := schedule(seed, nodTime, t, 4.7, 1); hash(seed, nodding, slot) < 0.34 {
		start := (float64(slot) + 0.4*hash(seed, nodTime, slot)) * 4.7
		if since := (t - start) / 1.5; since > 0 && since < 1 {
			swell := math.Sin(math.Pi * since)
			pitch += 7 * swell * swell * math.Sin(2*math.Pi*3*since)
		}
	}
	turn := func(share float64) quaternion {
		return rotation(vector{0, 1, 0}, share*yaw*degree).
			times(rotation(vector{1, 0, 0}, share*pitch*degree)).
			times(rotation(vector{0, 0, 1}, share*roll*degree))
	}
	p.turns[neck], p.turns[head] = turn(0.4), turn(0.6)
	open := talk * max(0, 0.35+0.65*wander(seed, jawMotion, 5.5*t)) * ramp(-0.6, 0.2, wander(seed, jawMotion, 1.1*t+70))
	p.turns[jaw] = rotation(vector{1, 0, 0}, 5*open*degree)
	return yaw
}

// blinks reports whether the eyes are closed: for 0.13 s about every 3.5 s.
func blinks(seed uint64, t float64) bool {
	const period, length = 3.5, 0.13
	slot := math.Floor(t / period)
	since := t - (slot+0.9*hash(seed, blinking, int64(slot)))*period
	return since >= 0 && since < length
}
