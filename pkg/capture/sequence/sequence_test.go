package sequence

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestNaturalOrder(t *testing.T) {
	sorted := []string{
		"", "0", "00", "1", "a", "a.ply", "a01.ply", "a1.ply", "a2.ply", "a10.ply", "a10b1.ply", "a10b02.ply",
		"a10b20.ply",
		"a99999999999999999999999998.ply", "a99999999999999999999999999.ply", "ab.ply", "b1.ply",
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		shuffled := slices.Clone(sorted)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		slices.SortFunc(shuffled, compareNatural)
		if !slices.Equal(shuffled, sorted) {
			t.Fatalf("got %q, expected %q", shuffled, sorted)
		}
	}
	for _, a := range sorted {
		for _, b := range sorted {
			if forth, back := compareNatural(a, b), compareNatural(b, a); forth != -back || (forth == 0) != (a == b) {
				t.Errorf("%q against %q is %d, and %d the other way round", a, b, forth, back)
			}
		}
	}
}

func FuzzNaturalOrder(f *testing.F) {
	f.Add("frame_2.ply", "frame_10.ply", "frame_010.ply")
	f.Add("", "0", "a\xff9")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		ab, bc, ac := compareNatural(a, b), compareNatural(b, c), compareNatural(a, c)
		if ab != -compareNatural(b, a) || (ab == 0) != (a == b) {
			t.Errorf("%q against %q is %d, the other way round %d", a, b, ab, compareNatural(b, a))
		}
		if ab <= 0 && bc <= 0 && ac > 0 {
			t.Errorf("%q <= %q <= %q, but not the first <= the last", a, b, c)
		}
	})
}
