package pacing

import (
	"errors"
	"testing"
	"time"
)

func TestModes(t *testing.T) {
	const interval = 30 * time.Millisecond
	for _, test := range []struct {
		text string
		adds time.Duration
	}{
		{"0.4", 12 * time.Millisecond},
		{"spread:0.4", 12 * time.Millisecond},
		{"1", interval},
		{"spread:20ms", 20 * time.Millisecond},
		{"spread:1ms", time.Millisecond},
		{"burst5ms", 12 * time.Millisecond},
		{"off", 0},
	} {
		plan, err := Mode(test.text).Plan()
		if adds := plan.Span(interval); err != nil || adds != test.adds || plan.Off() != (test.text == "off") {
			t.Errorf("%q adds %v, %v, expected %v", test.text, adds, err, test.adds)
		}
	}
	for _, text := range []string{"", "on", "0", "-0.4", "1.1", "NaN", "Inf", "20ms", "spread", "spread:", "spread:0",
		"spread:2", "spread:0.5ms", "spread:101ms",
		"spread:-20ms", "burst", "burst10ms", "OFF", " off"} {
		if err := Mode(text).Validate(); !errors.Is(err, ErrMode) {
			t.Errorf("%q: got %v, expected ErrMode", text, err)
		}
	}
	if Default.Validate() != nil || Off.Validate() != nil || Burst5ms.Validate() != nil {
		t.Error("a mode with a name was accepted")
	}
}
