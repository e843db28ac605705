package synthetic

import (
	"math"
	"testing"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

func TestFrameMovesSmoothly(t *testing.T) {
	var before, after pointcloud.Cloud
	const interval = 1. / 30
	furthest := 0.0
	small().At(0, &after)
	for at := 0.0; at < 40; at += interval {
		before, after = after, before
		small().At(seconds(at+interval), &after)
		step := 0.0
		for i := range before.Positions {
			step = max(step, distance(before.Positions[i], after.Positions[i]))
		}
		// A raised hand moves at 2 to 3 m/s.
		if step > 0.1 {
			t.Fatalf("at %g s a point jumps by %g m", at, step)
		}
		if step < 1e-5 {
			t.Fatalf("at %g s the figure stands still", at)
		}
		furthest = max(furthest, step)
	}
	if furthest < 0.01 {
		t.Errorf("nothing moves by more than %g m per frame: no gestures", furthest)
	}
}

func distance(a, b [3]float32) float64 {
	return vector{float64(a[0] - b[0]), float64(a[1] - b[1]), float64(a[2] - b[2])}.length()
}

// TestEveryPartMoves checks for motions that are typical in a conference.
func TestEveryPartMoves(t *testing.T) {
	extents := map[string]float64{}
	least := map[string]float64{
		"head yaw":    25,
		"head pitch":  8,
		"jaw":         2,
		"left elbow":  60,
		"right elbow": 60,
		"sway":        0.03,
		"breath":      1.8,
		"left knee":   3,
	}
	low, high := map[string]float64{}, map[string]float64{}
	observe := func(what string, value float64) {
		if _, ok := low[what]; !ok {
			low[what], high[what] = value, value
		}
		low[what], high[what] = min(low[what], value), max(high[what], value)
		extents[what] = high[what] - low[what]
	}
	blinks := 0
	for at30 := range 30 * 120 {
		p := at(3, float64(at30)/30)
		p.bones() // sets the legs
		nose := p.turns[neck].times(p.turns[head]).apply(vector{0, 0, 1})
		observe("head yaw", math.Atan2(nose[0], nose[2])/degree)
		observe("head pitch", math.Asin(nose[1])/degree)
		angle := func(b bone) float64 { return 2 * math.Acos(min(1, math.Abs(p.turns[b][0]))) / degree }
		observe("jaw", angle(jaw))
		observe("left elbow", angle(leftForearm))
		observe("right elbow", angle(rightForearm))
		observe("left knee", angle(leftShin))
		observe("sway", p.root.apply(vector{0, 1, 0})[0])
		observe("breath", p.breath)
		if p.blink {
			blinks++
		}
	}
	for what, extent := range least {
		if extents[what] < extent {
			t.Errorf("%s varies by %g within two minutes, expected %g or more", what, extents[what], extent)
		}
	}
	if blinks < 50 || blinks > 200 { // about 34 blinks of 4 frames
		t.Errorf("eyes are closed in %d of 3600 frames", blinks)
	}
}

func TestFeetDoNotSlide(t *testing.T) {
	for at30 := range 30 * 60 {
		p := at(5, float64(at30)/30)
		bones := p.bones()
		for _, foot := range []bone{leftFoot, rightFoot} {
			ankle := joints[foot].pivot
			if slip := bones[foot].apply(ankle).sub(ankle).length(); slip > 0.002 {
				t.Fatalf("frame %d: the foot slides by %g m", at30, slip)
			}
			if turn := 2 * math.Acos(min(1, math.Abs(bones[foot].turn[0]))); turn > 1e-6 {
				t.Fatalf("frame %d: the foot is turned by %g from flat on the floor", at30, turn)
			}
		}
	}
}

func TestHandsStayOutOfTheBody(t *testing.T) {
	body := newBody(shortHair)
	var trunk field
	for _, g := range body[:len(body)-2] { // all but the hands
		kept := group{cut: g.cut, soft: g.soft, carved: g.carved}
		for _, s := range g.solids {
			if s.bone <= head {
				kept.solids = append(kept.solids, s)
			}
		}
		if len(kept.solids) > 0 {
			trunk = append(trunk, kept)
		}
	}
	tips := map[bone][]vector{}
	for i, p := range small().rest {
		if b := bone(
			int(small().entries[i]) / (steps + 1),
		); b == leftHand || b == leftFingers || b == rightHand ||
			b == rightFingers {
			tips[b] = append(tips[b], vector{float64(p[0]), float64(p[1]), float64(p[2])})
		}
	}
	if len(tips) != 4 {
		t.Fatalf("hands have points on %d bones, expected 4", len(tips))
	}
	for seed := range uint64(4) {
		for at3 := range 240 {
			p := at(seed, float64(at3)/3)
			bones := p.bones()
			for b, places := range tips {
				// Ten points represent a hand well enough.
				for i := 0; i < len(places); i += max(1, len(places)/10) {
					place := bones[b].apply(places[i])
					back := bones[chest].turn.inverse().apply(place.sub(bones[chest].shift))
					if d, _ := trunk.distance(back); d < -0.005 {
						t.Fatalf("seed %d at %g s: a hand is %g m deep in the body", seed, float64(at3)/3, -d)
					}
				}
			}
		}
	}
}
