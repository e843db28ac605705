package guest

import (
	"testing"
	"time"
)

var begin = time.Unix(1_700_000_000, 0)

// TestOneCaptureTime checks that all frames of one instant have one capture time, also if tiles of
// two instants are written at the same time, and if numbers wrap around.
func TestOneCaptureTime(t *testing.T) {
	const interval = 33 * time.Millisecond
	var c captures
	at := func(number uint32) time.Time { return begin.Add(time.Duration(int32(number)) * interval) }
	first := uint32(1<<32 - 20)
	for number := first; number != 20; number++ {
		for late := range time.Duration(3) {
			if got := c.of(number, at(number).Add(late*time.Millisecond)); !got.Equal(at(number)) {
				t.Errorf("instant %d: %v, expected %v", number, got, at(number))
			}
			c.settle(number, at(number), true)
			if number == first {
				continue
			}
			if got := c.of(number-1, at(number)); !got.Equal(at(number - 1)) {
				t.Errorf("the instant before %d: %v, expected %v", number, got, at(number-1))
			}
		}
	}
}

// TestUnsentInstants checks that a number without sent frames is available for a later instant.
func TestUnsentInstants(t *testing.T) {
	later, latest := begin.Add(time.Second), begin.Add(2*time.Second)
	var c captures
	c.settle(7, c.of(7, begin), false)
	if got := c.of(7, later); !got.Equal(later) {
		t.Errorf("after nothing was sent: %v, expected %v", got, later)
	}
	c.settle(7, later, true)
	c.settle(7, later, false)
	if got := c.of(7, latest); !got.Equal(later) {
		t.Errorf("after one tile was sent and one was not: %v, expected %v", got, later)
	}
	// A sent frame restores an instant that was removed meanwhile.
	c.of(8, begin)
	c.settle(8, begin, false)
	c.settle(8, begin, true)
	if got := c.of(8, latest); !got.Equal(begin) {
		t.Errorf("after one tile was not sent and one was: %v, expected %v", got, begin)
	}
}
