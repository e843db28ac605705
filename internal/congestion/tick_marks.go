package congestion

import "time"

const (
	// tickGap separates two ticks of the pacer, which are 500 µs apart.
	tickGap = 100 * time.Microsecond
	// tickCount is the number of marked packets, other than the first ones of their ticks, after which marks are
	// compared. They are marked at least tickFactor times as often as the first ones if the marker admits one packet
	// per tick.
	tickCount  = 24
	tickFactor = 4
	// tickDelay bounds the mean delay of marked packets of such a marker, which has no queue. The steps of arrival
	// times, 1 ms, add half of a step to a mean delay. Packets that DualPI2 marks because of their own delay have
	// waited for 0.8 ms or longer, and more of them are the last ones of a tick.
	tickDelay = time.Millisecond
	// tickLongest bounds a delay, so that forged arrival times do not overflow the sum.
	tickLongest = time.Second
	// spacedTime is the time for which packets leave one by one. Then the marks are compared again.
	spacedTime = time.Minute
)

// tickMarks compares the marks of the first packets of the pacer's ticks with those of the others. A marker that meters
// the rate, as that of paper 000, admits a packet whenever it has tokens for one. When it is empty, it admits the first
// packet of a tick and marks the others: a sender with 2,000 ticks per second has 19.6 Mbit/s, whatever the fair rate
// is. On such a path packets have to leave one by one.
type tickMarks struct {
	latest        time.Duration // departure of the latest packet
	begun         bool
	first, others markedPackets
	spaced        bool
	until         time.Duration // end of spaced
}

// markedPackets counts packets, and sums the queueing delays of the marked ones.
type markedPackets struct {
	packets, marked int
	delay           time.Duration
}

// add adds a received packet in the order of arrival.
func (t *tickMarks) add(sent, delay time.Duration, marked bool) {
	m := &t.first
	if t.begun && sent-t.latest < tickGap {
		m = &t.others
	}
	t.latest, t.begun = sent, true
	m.packets++
	if marked {
		m.marked++
		m.delay += min(delay, tickLongest)
	}
}

// judge decides after a report.
func (t *tickMarks) judge(now time.Duration) {
	switch {
	case t.spaced && now < t.until:
		t.first, t.others = markedPackets{}, markedPackets{}
	case t.others.marked >= tickCount || t.spaced:
		t.spaced = t.others.marked >= tickCount && t.metered()
		t.until = now + spacedTime
		t.first, t.others = markedPackets{}, markedPackets{}
	}
}

// metered reports whether the marks are those of a marker that meters the rate.
func (t *tickMarks) metered() bool {
	return t.others.delay < tickDelay*time.Duration(t.others.marked) &&
		t.others.marked*t.first.packets > tickFactor*(t.first.marked+1)*t.others.packets
}
