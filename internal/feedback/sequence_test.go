package feedback

import "testing"

func TestUnwrap(t *testing.T) {
	type step struct {
		sequence   uint16
		extended   int64 // not compared for strays
		continuity Continuity
	}
	tests := map[string][]step{
		"in order over the edge": {{65534, 131070, Continuous}, {65535, 131071, Continuous}, {0, 131072, Continuous},
			{1, 131073, Continuous}},
		"reordered over the edge": {
			{65535, 131071, Continuous}, {1, 131073, Continuous}, {0, 131072, Continuous}, {65534, 131070, Continuous},
			{2, 131074, Continuous},
		},
		"before the first":   {{0, 65536, Continuous}, {65535, 65535, Continuous}},
		"longest jump":       {{100, 65636, Continuous}, {16484, 82020, Continuous}},
		"longest reordering": {{20000, 85536, Continuous}, {3616, 69152, Continuous}},
		"a stray does no harm": {{100, 65636, Continuous}, {40000, 0, Stray}, {101, 65637, Continuous},
			{40001, 0, Stray}, {102, 65638, Continuous}},
		"two far strays do no harm": {
			{100, 65636, Continuous}, {40000, 0, Stray}, {20000, 0, Stray}, {101, 65637, Continuous},
		},
		"restart ahead": {{100, 65636, Continuous}, {30000, 0, Stray}, {30001, 95537, Reset},
			{30002, 95538, Continuous}, {30000, 95536, Continuous}},
		"restart behind": {{30000, 95536, Continuous}, {7, 0, Stray}, {8, 131080, Reset}, {9, 131081, Continuous}},
		"restart with loss and reordering": {
			{30000, 95536, Continuous}, {70, 0, Stray}, {7, 131079, Reset}, {70, 131142, Continuous},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			var u Unwrapper
			for i, step := range steps {
				extended, continuity := u.Unwrap(step.sequence)
				if continuity != step.continuity || continuity != Stray && extended != step.extended {
					t.Fatalf("step %d: %d is %d, %d; expected %d, %d", i, step.sequence, extended, continuity,
						step.extended, step.continuity)
				}
			}
		})
	}
}

// FuzzUnwrap checks that the low 16 bits do not change, that numbers never jump without a reset, and that a reset only
// increases them.
func FuzzUnwrap(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0xff, 0xff, 0x80, 0, 0x80, 1, 0x80, 0})
	f.Add([]byte{0x40, 0, 0x80, 0, 0xc0, 0, 0, 0, 0x40, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		var u Unwrapper
		for first := true; len(data) >= 2; data, first = data[2:], false {
			sequence := uint16(data[0])<<8 | uint16(data[1])
			before := u.Highest()
			extended, continuity := u.Unwrap(sequence)
			distance := extended - before
			switch {
			case uint16(extended) != sequence:
				t.Fatalf("%d became %d", sequence, extended)
			case first:
			case continuity == Continuous && (distance > maxJump || distance < -maxJump):
				t.Fatalf("%d after %d is called continuous", extended, before)
			case continuity == Reset && (distance <= maxJump || u.Highest() != extended):
				t.Fatalf("reset from %d to %d", before, extended)
			case continuity == Stray && u.Highest() != before:
				t.Fatalf("a stray moved the highest from %d to %d", before, u.Highest())
			}
		}
	})
}
