package feedback

import "time"

// earlyWindow is the time within which a packet has come as early as the path allows: clocks that drift by 100 parts in a million are 1 ms apart then.
const earlyWindow = 5 * time.Second

// lateness is how much later than the earliest packets come. Transit times are in timestamp units, modulo 2^32, with an unknown difference of clocks.
type lateness struct {
	base     int64 // transit times are changes from it
	earliest RecentMax
	latest   RecentMax // of what comes after the earliest
}

// take takes the transit time of the newest packet. restart says that it cannot be compared to those before.
func (l *lateness) take(transit int64, restart bool, now time.Time) {
	if restart {
		*l = lateness{base: transit}
	}
	change := int64(int32(transit - l.base))
	l.earliest.Add(now, -change, earlyWindow)
	l.latest.Add(now, change+l.earliest.Value(), QueueMemory)
}
