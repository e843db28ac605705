package experiment

import (
	"strings"
	"testing"
)

// TestJudge: a busy machine overrides a disturbance; a disturbance of a machine that kept up makes an iteration
// invalid. Lateness of the network alone does not.
func TestJudge(t *testing.T) {
	const late, disturbed = "by an hour", "for an hour"
	for name, test := range map[string]struct {
		pace    Pace
		want    Validity
		reasons []string
	}{
		"in time": {Pace{Wanted: 100, Done: 95, DroppedByCPU: 5, Busy: 0.95}, Valid, nil},
		"dropped": {Pace{Wanted: 100, Done: 94, DroppedByCPU: 6}, CPUBound,
			[]string{"6 of 100 frames; 94 reached the end"}},
		"busy": {Pace{Wanted: 100, Done: 100, Busy: 0.96}, CPUBound, []string{"96 %"}},
		"late": {Pace{Wanted: 100, Done: 100, Busy: 0.5, Late: late}, Valid, nil},
		"late and dropped": {Pace{Wanted: 100, Done: 90, DroppedByCPU: 10, Late: late}, CPUBound,
			[]string{"10 of 100 frames"}},
		"disturbed": {Pace{Wanted: 100, Done: 100, Busy: 0.5, Disturbed: disturbed}, Invalid,
			[]string{disturbed}},
		"disturbed, late": {Pace{Wanted: 100, Done: 100, Busy: 0.5, Disturbed: disturbed, Late: late}, Invalid,
			[]string{disturbed}},
		"disturbed, dropped": {Pace{Wanted: 100, Done: 90, DroppedByCPU: 10, Disturbed: disturbed}, CPUBound,
			[]string{"10 of 100 frames", disturbed}},
		"disturbed, full": {Pace{Wanted: 100, Done: 100, Busy: 1, Disturbed: disturbed}, CPUBound,
			[]string{"100 %", disturbed}},
	} {
		o := NewOutcome()
		o.Judge(test.pace)
		if o.Late != test.pace.Late {
			t.Errorf("%s: the network was late %q, expected %q", name, o.Late, test.pace.Late)
		}
		if o.Validity != test.want || len(test.reasons) == 0 && o.Reason != "" {
			t.Errorf("%s: expected %s, got %s: %s", name, test.want, o.Validity, o.Reason)
		}
		for _, reason := range test.reasons {
			if !strings.Contains(o.Reason, reason) {
				t.Errorf("%s: expected a reason with %q, got %q", name, reason, o.Reason)
			}
		}
	}
	skipped := Skip("no namespaces on this machine")
	if skipped.Judge(Pace{Busy: 1, Late: late}); skipped.Validity != Skipped {
		t.Errorf("expected a skipped outcome to stay skipped, got %s", skipped.Validity)
	}
}

// TestBlame: processor time given to other machines is named in the reason of a disturbed iteration only.
func TestBlame(t *testing.T) {
	for _, test := range []struct {
		validity Validity
		stolen   float64
		want     string
	}{
		{Invalid, 0.021, "late; the host gave 2.1 % of the processors' time to other machines"},
		{CPUBound, 0.5, "late; the host gave 50.0 % of the processors' time to other machines"},
		{Invalid, 0.0009, "late"},
		{Valid, 0.5, "late"},
		{Failed, 0.5, "late"},
		{Skipped, 0.5, "late"},
	} {
		o := &Outcome{Validity: test.validity, Reason: "late"}
		if o.blame(test.stolen); o.Reason != test.want {
			t.Errorf("%s, %g stolen: %q, want %q", test.validity, test.stolen, o.Reason, test.want)
		}
	}
}
