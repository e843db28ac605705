package fidelity

import (
	"math"
	"sync"
)

// lightness returns the lightness of an sRGB colour in LAB2000HL (Lissner and Urban, "Toward a Unified Color Space for
// Perception-Based Image Processing", IEEE Transactions on Image Processing 21(3), 2012), from 0 for black to 75.15 for
// white. A difference of 1 is a difference of 1 of CIEDE2000.
func lightness(c [3]uint8) float64 {
	// Y of the white point D65, IEC 61966-2-1.
	y := 0.212586*linear(c[0]) + 0.71517*linear(c[1]) + 0.0722005*linear(c[2])
	// L* of CIE 1976: CIE 15:2004, section 8.2.1.
	root := 841./108*y + 4./29
	if y > 216./24389 {
		root = math.Cbrt(y)
	}
	at := max(0, 116*root-16) / 100 * (lightnessSteps - 1)
	table := lightnessTable()
	i := min(int(at), lightnessSteps-2)
	return table[i] + (at-float64(i))*(table[i+1]-table[i])
}

// linear returns the linear value of an sRGB channel.
func linear(v uint8) float64 {
	if s := float64(v) / 255; s > 0.0404482362771076 {
		return math.Pow((s+0.055)/1.055, 2.4)
	} else {
		return s / 12.92
	}
}

// lightnessSteps is the number of table entries for L* from 0 to 100. With steps of 0.01 the linear interpolation is
// exact to 1e-6.
const lightnessSteps = 10001

// lightnessTable returns the integral of 1 / S_L over L*. S_L is the weight of lightness differences in CIEDE2000 (CIE
// 142-2001).
var lightnessTable = sync.OnceValue(func() []float64 {
	weight := func(l float64) float64 {
		square := (l - 50) * (l - 50)
		return 1 / (1 + 0.015*square/math.Sqrt(20+square))
	}
	const step = 100. / (lightnessSteps - 1)
	table := make([]float64, lightnessSteps)
	for i := 1; i < lightnessSteps; i++ {
		// Simpson's rule.
		l := float64(i) * step
		table[i] = table[i-1] + step/6*(weight(l-step)+4*weight(l-step/2)+weight(l))
	}
	return table
})
