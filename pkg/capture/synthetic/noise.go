package synthetic

import "math"

// hash maps a seed, a channel and a lattice position to [0, 1) (the finaliser of splitmix64).
func hash(seed, channel uint64, lattice int64) float64 {
	x := seed*0x9e3779b97f4a7c15 + channel*0xd1342543de82ef95 + uint64(lattice)*0x2545f4914f6cdd1d
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

// smoothStep rises from 0 at 0 to 1 at 1, with zero speed and acceleration at both ends.
func smoothStep(x float64) float64 {
	x = min(max(x, 0), 1)
	return x * x * x * (x*(6*x-15) + 10)
}

// ramp is smoothStep between two values of x.
func ramp(from, to, x float64) float64 { return smoothStep((x - from) / (to - from)) }

// mix returns a for w = 0 and b for w = 1.
func mix(a, b, w float64) float64 { return a + (b-a)*w }

// wander returns noise between -1 and 1 that moves from one random value to the next once per unit of x. wander never
// repeats.
func wander(seed, channel uint64, x float64) float64 {
	cell := math.Floor(x)
	a, b := hash(seed, channel, int64(cell)), hash(seed, channel, int64(cell)+1)
	return 2*mix(a, b, smoothStep(x-cell)) - 1
}

// texture is wander in three dimensions, for uneven surfaces.
func texture(seed, channel uint64, p vector, size float64) float64 {
	var cell [3]int64
	var part [3]float64
	for axis := range 3 {
		floor := math.Floor(p[axis] / size)
		cell[axis], part[axis] = int64(floor), smoothStep(p[axis]/size-floor)
	}
	sum := 0.0
	for corner := range int64(8) {
		weight, lattice := 1.0, int64(0)
		for axis := range 3 {
			bit := corner >> axis & 1
			lattice = lattice*1_000_003 + cell[axis] + bit
			if bit == 1 {
				weight *= part[axis]
			} else {
				weight *= 1 - part[axis]
			}
		}
		sum += weight * hash(seed, channel, lattice)
	}
	return 2*sum - 1
}
