package allocate

import (
	"math"
	"testing"
	"time"
)

// apart returns the distance in metres and the angle in radians between two viewpoints.
func apart(a, b Viewpoint) (distance, angle float64) {
	distance = vector(a.Position).minus(b.Position).length()
	return distance, rotation(a.Orientation).after(rotation(b.Orientation).inverse()).turn().length()
}

// moving walks at 1 m/s along x and turns to the left at 1 rad/s.
func moving(seconds float64) Viewpoint {
	v := eyeAt(seconds, 1.6, 0, seconds*180/math.Pi)
	v.At = epoch.Add(time.Duration(seconds * float64(time.Second)))
	return v
}

func TestPredictorExtrapolates(t *testing.T) {
	var p Predictor
	if _, known := p.Predict(epoch); known {
		t.Error("a viewpoint without reports")
	}
	for n := range 60 {
		v := moving(float64(n) / 60)
		p.Observe(v)
		p.Observe(v) // duplicates change nothing
		if n > 5 {
			p.Observe(moving(float64(n-5) / 60)) // late reports change nothing
		}
	}
	last := moving(59. / 60)
	got, _ := p.Predict(last.At.Add(100 * time.Millisecond))
	if distance, angle := apart(got, moving(59./60+0.1)); distance > 0.025 || angle > 0.025 {
		t.Errorf("100 ms ahead: %.3f m and %.3f rad beside, of 0.1 each", distance, angle)
	}
	if !got.At.Equal(last.At.Add(100*time.Millisecond)) || got.FOV != last.FOV {
		t.Errorf("100 ms ahead: %+v", got)
	}
	for _, ahead := range []time.Duration{-time.Second, 0, time.Second, time.Hour} {
		got, _ := p.Predict(last.At.Add(ahead))
		if distance, angle := apart(got, last); distance > 1e-9 || angle > 1e-9 {
			t.Errorf("%v ahead: %.3f m and %.3f rad from the last report", ahead, distance, angle)
		}
	}
	for ahead := range 1000 {
		got, _ := p.Predict(last.At.Add(time.Duration(ahead) * time.Millisecond))
		if distance, _ := apart(got, last); distance > 0.149 {
			t.Errorf("%d ms ahead: %.3f m", ahead, distance)
		}
	}
}

// The test compares prediction with the last report, 100 ms ahead: a round trip and two frame intervals.
func TestPredictionOfRealViewers(t *testing.T) {
	const ahead = 3 // rows at 30 per second
	var held, predicted [2]float64
	n := 0.0
	for _, trace := range readViewports(t, math.Pi/2, 1) {
		var p Predictor
		for i := range len(trace) - ahead {
			p.Observe(trace[i])
			if i < 10 {
				continue
			}
			v, _ := p.Predict(trace[i+ahead].At)
			d, a := apart(v, trace[i+ahead])
			predicted[0], predicted[1] = predicted[0]+d, predicted[1]+a
			d, a = apart(trace[i], trace[i+ahead])
			held[0], held[1] = held[0]+d, held[1]+a
			n++
		}
	}
	degrees := 180 / math.Pi
	t.Logf("mean error after 100 ms: %.1f mm and %.2f°, by the last report alone %.1f mm and %.2f°",
		1000*predicted[0]/n, degrees*predicted[1]/n, 1000*held[0]/n, degrees*held[1]/n)
	for i, what := range []string{"position", "orientation"} {
		if predicted[i] > 0.7*held[i] {
			t.Errorf("%s: prediction leaves %.0f %% of the error, expected 70 %% at most", what,
				100*predicted[i]/held[i])
		}
	}
}
