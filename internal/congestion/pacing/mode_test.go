package pacing

import (
	"encoding"
	"errors"
	"testing"
	"time"
)

var (
	_ encoding.TextUnmarshaler = (*Mode)(nil)
	_ encoding.TextMarshaler   = Mode("")
)

func TestModes(t *testing.T) {
	const interval = 30 * time.Millisecond
	for _, test := range []struct {
		text, written string
		adds          time.Duration
	}{
		{"0.4", "spread:0.4", 12 * time.Millisecond},
		{"spread:0.4", "spread:0.4", 12 * time.Millisecond},
		{"1", "spread:1", interval},
		{"spread:20ms", "spread:20ms", 20 * time.Millisecond},
		{"spread:1ms", "spread:1ms", time.Millisecond},
		{"burst5ms", "burst5ms", 12 * time.Millisecond},
		{"off", "off", 0},
	} {
		var m Mode
		if err := m.UnmarshalText([]byte(test.text)); err != nil {
			t.Fatal(err)
		}
		if text, err := m.MarshalText(); string(text) != test.written || err != nil {
			t.Errorf("%q is written as %q, %v, expected %q", test.text, text, err, test.written)
		}
		plan, err := Mode(test.text).Plan()
		if adds := plan.Span(interval); err != nil || adds != test.adds || plan.Off() != (test.text == "off") {
			t.Errorf("%q adds %v, %v, expected %v", test.text, adds, err, test.adds)
		}
	}
	for _, text := range []string{"", "on", "0", "-0.4", "1.1", "NaN", "Inf", "20ms", "spread", "spread:", "spread:0", "spread:2", "spread:0.5ms", "spread:101ms",
		"spread:-20ms", "burst", "burst10ms", "OFF", " off"} {
		m := Default
		if err := m.UnmarshalText([]byte(text)); !errors.Is(err, ErrMode) || m != Default {
			t.Errorf("%q became %q, %v, expected an error and no change", text, m, err)
		}
		if _, err := Mode(text).MarshalText(); !errors.Is(err, ErrMode) {
			t.Errorf("%q was written, with %v", text, err)
		}
	}
	if Default.Validate() != nil || Off.Validate() != nil || Burst5ms.Validate() != nil {
		t.Error("a mode with a name is no mode")
	}
}
