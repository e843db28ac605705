//go:build faulty

package fault

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]fault{
		"": {}, "loss": {kind: loss}, "delay": {kind: late}, "no-switch": {kind: noSwitch},
		"crash=5s": {crash, 5 * time.Second},
	} {
		if got, err := parse(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v, expected %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"crash", "crash=", "crash=0s", "crash=soon", "loss=1", "=1s", "fire"} {
		if got, err := parse(text); err == nil {
			t.Errorf("%q is %+v, expected an error", text, got)
		}
	}
}

func TestLaterKeepsOrder(t *testing.T) {
	begun := time.Now()
	done := make(chan int, 2)
	for i := range cap(done) {
		Later(func() { done <- i })
	}
	for i := range cap(done) {
		if got := <-done; got != i || time.Since(begun) < delay {
			t.Errorf("call %d returned instead of %d, after %v, expected %v at least", got, i, time.Since(begun), delay)
		}
	}
}
