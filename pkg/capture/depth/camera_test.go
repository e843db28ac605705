package depth

import (
	"math"
	"testing"
)

// lenses are the real depth and colour cameras of an Azure Kinect. For the other models, the
// coefficients are similar to those that librealsense reports for its colour and fisheye cameras.
var lenses = map[string]struct {
	lens Distortion
	wide float64 // maximum distance from the axis in use
}{
	"none": {Distortion{}, 2},
	"brown-conrady": {
		Distortion{Model: BrownConrady, Coefficients: [8]float64{-0.055, 0.066, -0.0005, 0.0008, -0.021}},
		0.8,
	},
	"modified": {
		Distortion{Model: ModifiedBrownConrady, Coefficients: [8]float64{0.13, -0.19, -0.002, 0.001, 0.06}},
		0.6,
	},
	"inverse": {
		Distortion{Model: InverseBrownConrady, Coefficients: [8]float64{-0.055, 0.066, -0.0005, 0.0008, -0.021}},
		0.8,
	},
	"fisheye": {Distortion{Model: KannalaBrandt4, Coefficients: [8]float64{-0.0077, 0.042, -0.039, 0.0066}}, 3},
	"kinect depth": {Distortion{Model: Rational, Radius: 1.74, Coefficients: [8]float64{
		0.5479397773742676, -0.020971370860934258, 2.0557534298859537e-05, -7.2104157879948616e-05,
		-0.0026522316038608551, 0.88967907428741455, 0.086130209267139435, -0.013910384848713875}}, 1.7},
	"kinect colour": {Distortion{Model: Rational, Radius: 1.7, Coefficients: [8]float64{
		0.33012130856513977, -2.4893965721130371, -0.00016178244550246745, -0.00012944525224156678, 1.453670859336853,
		0.20891207456588745, -2.302915096282959, 1.3751275539398193}}, 0.9},
}

func TestDistortionIsUndone(t *testing.T) {
	for name, test := range lenses {
		for i := range 41 {
			for k := range 41 {
				x, y := test.wide*(float64(i)/20-1), test.wide*(float64(k)/20-1)
				if math.Hypot(x, y) > test.wide {
					continue
				}
				u, v, ok := test.lens.apply(x, y)
				if !ok {
					t.Fatalf("%s: %g, %g is out of reach", name, x, y)
				}
				gotX, gotY, ok := test.lens.remove(u, v)
				if off := math.Hypot(gotX-x, gotY-y); !ok || !(off < 1e-6*(1+math.Hypot(x, y)*math.Hypot(x, y))) {
					t.Errorf("%s: %g, %g became %g, %g and back %g, %g, %v", name, x, y, u, v, gotX, gotY, ok)
				}
			}
		}
	}
}

// TestDistortionAsDocumented compares the formulas with numbers computed by hand from those of
// librealsense's rsutil.h and OpenCV's documentation.
func TestDistortionAsDocumented(t *testing.T) {
	k := [8]float64{0.1, -0.2, 0.01, 0.02, 0.3, 0.05, -0.06, 0.07}
	const x, y = 0.3, -0.4
	const r2 = 0.25
	radial := 1 + 0.1*r2 - 0.2*r2*r2 + 0.3*r2*r2*r2
	rational := radial / (1 + 0.05*r2 - 0.06*r2*r2 + 0.07*r2*r2*r2)
	theta := math.Atan(0.5)
	fisheye := theta * (1 + 0.1*theta*theta - 0.2*math.Pow(theta, 4) + 0.01*math.Pow(theta, 6) +
		0.02*math.Pow(theta, 8)) / 0.5
	tangential := func(x, y float64) (float64, float64) {
		return 2*0.01*x*y + 0.02*(r2+2*x*x), 2*0.02*x*y + 0.01*(r2+2*y*y)
	}
	plainX, plainY := tangential(x, y)
	scaledX, scaledY := tangential(x*radial, y*radial)
	for model, expected := range map[Model][2]float64{
		None:                 {x, y},
		BrownConrady:         {x*radial + plainX, y*radial + plainY},
		ModifiedBrownConrady: {x*radial + scaledX, y*radial + scaledY},
		InverseBrownConrady:  {x*radial + scaledX, y*radial + scaledY},
		KannalaBrandt4:       {x * fisheye, y * fisheye},
		Rational:             {x*rational + plainX, y*rational + plainY},
	} {
		lens := Distortion{Model: model, Coefficients: k}
		u, v, ok := lens.apply(x, y)
		if !ok || math.Abs(u-expected[0]) > 1e-12 || math.Abs(v-expected[1]) > 1e-12 {
			t.Errorf("%v: got %g, %g, %v, expected %g", model, u, v, ok, expected)
		}
	}
}

func TestDistortionBeyondItsReach(t *testing.T) {
	kinect := lenses["kinect depth"].lens
	if _, _, ok := kinect.apply(1.3, 1.3); ok {
		t.Error("a point beyond the radius was projected")
	}
	if _, _, ok := kinect.remove(5, 5); ok {
		t.Error("a pixel beyond the radius was undistorted")
	}
	// r · (1 - r²) has its maximum at r = 0.577: no point appears farther out than 0.385, and
	// points beyond 0.577 appear at the same place as nearer ones.
	folding := Distortion{Model: BrownConrady, Coefficients: [8]float64{-1}}
	if x, _, ok := folding.remove(0.38, 0); !ok || x > 0.578 {
		t.Errorf("just before the fold: %g, %v", x, ok)
	}
	if x, _, ok := folding.remove(0.39, 0); ok {
		t.Errorf("beyond the fold: %g", x)
	}
}

func TestModelNames(t *testing.T) {
	for model := None; model <= Rational; model++ {
		text, err := model.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back Model
		if err := back.UnmarshalText(text); err != nil || back != model {
			t.Errorf("%s is read as %v, %v", text, back, err)
		}
	}
	if _, err := ParseModel("barrel"); err == nil {
		t.Error("an unknown model was read")
	}
}

func FuzzDistortion(f *testing.F) {
	for _, test := range lenses {
		k := test.lens.Coefficients
		f.Add(uint8(test.lens.Model), k[0], k[1], k[2], k[3], k[4], k[5], k[6], k[7], 0.3, -0.2)
	}
	f.Add(uint8(Rational), 0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 1.0, 0.0)
	f.Fuzz(func(t *testing.T, model uint8, a, b, c, d, e, g, h, i, u, v float64) {
		lens := Distortion{Model: Model(model % 6), Coefficients: [8]float64{a, b, c, d, e, g, h, i}}
		if lens.validate() != nil || !finite(u) || !finite(v) {
			return
		}
		x, y, ok := lens.remove(u, v)
		if !ok || lens.Model == None {
			return
		}
		if backU, backV, ok := lens.apply(x, y); !ok || math.Abs(backU-u)+math.Abs(backV-v) > 2e-6 {
			t.Errorf("%+v: %g, %g is undistorted to %g, %g, which appears at %g, %g", lens, u, v, x, y, backU, backV)
		}
	})
}
