package paths

import "time"

const (
	// leastSlot and leastSlots are the window of the least delay: 16 × 2 s = 32 s. A path that varies reaches the low
	// end of its delays within that time. Clocks that drift apart by 50 ppm shift the delays within the window by 1.6
	// ms.
	leastSlot  = 2 * time.Second
	leastSlots = 16
)

// leastDelay is the least delay within the window. The zero value has no delays yet.
type leastDelay struct {
	known bool
	value time.Duration // valid if known
	slots [leastSlots]delayAt
	last  int64 // newest slot, in leastSlot since the clock's origin
}

// delayAt is the least delay of a slot.
type delayAt struct {
	known bool
	delay time.Duration
}

// add takes a delay at now.
func (l *leastDelay) add(now, delay time.Duration) {
	l.roll(now)
	if s := &l.slots[l.last%leastSlots]; !s.known || delay < s.delay {
		*s = delayAt{true, delay}
	}
	if !l.known || delay < l.value {
		l.known, l.value = true, delay
	}
}

// roll moves the window to now.
func (l *leastDelay) roll(now time.Duration) {
	current := int64(now / leastSlot)
	if current <= l.last {
		return
	}
	for i := max(l.last+1, current-leastSlots+1); i <= current; i++ {
		l.slots[i%leastSlots] = delayAt{}
	}
	l.last, l.known = current, false
	for _, s := range l.slots {
		if s.known && (!l.known || s.delay < l.value) {
			l.known, l.value = true, s.delay
		}
	}
}
