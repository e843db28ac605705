package router

import (
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

// Statistics are the counters of a Router since its start, or since the last Restart.
type Statistics struct {
	// Duration is that time.
	Duration time.Duration
	// Wires are in the order of the plan.
	Wires []WireStatistics
	// Interfaces are in the order of the plan, all of one namespace after the other.
	Interfaces []InterfaceStatistics
	// Late is the lateness of written packets relative to the emulated network: the sum of ReadLate, an upper bound,
	// and WriteLate.
	Late netem.DelayCounts
	// ReadLate and WriteLate are the two parts.
	ReadLate, WriteLate netem.DelayCounts
	// Watch is the lateness of a thread that only wakes up, every 5 ms, with a real-time priority. Unwatched is set if
	// the kernel does not grant that priority; Watch is then empty.
	Watch     netem.DelayCounts
	Unwatched bool
	// Unroutable counts packets without a route in the plan, such as multicast; Malformed counts packets that are
	// neither IPv4 nor IPv6; Refused counts packets that a namespace's kernel did not accept.
	Unroutable, Malformed, Refused uint64
	// CPU is the processor time of the router's thread.
	CPU time.Duration
	// Blind is set if the system does not report how long the thread has waited for a processor, so that ReadLate does
	// not include this time.
	Blind bool
}

// InterfaceStatistics are the counters of an interface.
type InterfaceStatistics struct {
	Namespace, Name string
	// Sent counts packets from the namespace, Received packets to the namespace.
	Sent, SentBytes, Received, ReceivedBytes uint64
	// Overrun counts packets that the kernel dropped because the router did not read them in time.
	Overrun uint64
	// Boxed counts packets in both directions that the box of the interface dropped.
	Boxed uint64
}

// Packets returns the number of packets that reached the end of their route.
func (s *Statistics) Packets() uint64 { return s.Late.Count() }

// The limits of Validity.
const (
	// LateP95 bounds the lateness of 95 % of the packets: the precision of emulated delays. Round trips of 1 ms are
	// then emulated to a factor of 2, and the lateness does not exceed a packet time at 25 Mbit/s, the lowest rate of
	// volumetric video.
	LateP95 = 500 * time.Microsecond
	// LateP999 bounds the lateness of 99.9 % of the packets. Beyond about 10 ms lateness looks like a queue to a
	// congestion controller (the threshold of GCC's overuse detector begins at 12.5 ms) and costs a frame its place in
	// a frame interval of 33 ms.
	LateP999 = 10 * time.Millisecond
)

// Validity reports whether a router was in time, and whether the machine was. A router may be late because of its
// packets: a large burst is late on any machine. That is a result of the sender of the burst. Only a disturbance, which
// a thread unrelated to packets measures, is a reason to discard a run.
type Validity struct {
	// Valid is set if 95 % of the packets were late by at most LateP95, 99.9 % by at most LateP999, and no packet was
	// dropped before it was read.
	Valid bool `json:"valid"`
	// Reason is a sentence with the violated condition; empty if Valid.
	Reason string `json:"reason,omitempty"`
	// Disturbance is a sentence about the lateness of the machine itself; empty if there was none, or if it is unknown.
	Disturbance string `json:"disturbance,omitempty"`
	// WatchP95 and WatchP999 are quantiles of the lateness of the thread that measures disturbances.
	WatchP95  time.Duration `json:"watch_p95_ns"`
	WatchP999 time.Duration `json:"watch_p999_ns"`
	// Unwatched is set if the kernel does not grant that thread its priority, so that disturbances are unknown.
	Unwatched bool `json:"unwatched,omitempty"`
	// P50, P95, P999 and Max are quantiles of the packets' lateness.
	P50  time.Duration `json:"late_p50_ns"`
	P95  time.Duration `json:"late_p95_ns"`
	P999 time.Duration `json:"late_p999_ns"`
	Max  time.Duration `json:"late_max_ns"`
	// Overrun counts packets that were dropped because the router did not read them in time.
	Overrun uint64 `json:"overrun"`
	// Packets is the number of evaluated packets.
	Packets uint64 `json:"packets"`
}

// Validity evaluates the conditions of Validity.Valid.
func (s *Statistics) Validity() Validity {
	v := Validity{
		WatchP95: s.Watch.Quantile(0.95), WatchP999: s.Watch.Quantile(0.999), Unwatched: s.Unwatched,
		P50: s.Late.Quantile(0.5), P95: s.Late.Quantile(0.95), P999: s.Late.Quantile(0.999), Max: s.Late.Quantile(1),
		Packets: s.Packets(),
	}
	for i := range s.Interfaces {
		v.Overrun += s.Interfaces[i].Overrun
	}
	switch {
	case v.Overrun > 0:
		v.Reason = fmt.Sprintf("the router left %d packets unread until the kernel dropped them", v.Overrun)
	case v.P95 > LateP95:
		v.Reason = fmt.Sprintf("of the packets 5 %% were late by more than %v, expected at most %v",
			v.P95.Round(time.Microsecond), LateP95)
	case v.P999 > LateP999:
		v.Reason = fmt.Sprintf("of the packets 0.1 %% were late by more than %v, expected at most %v",
			v.P999.Round(time.Microsecond), LateP999)
	}
	v.Valid = v.Reason == ""
	switch {
	case v.WatchP95 > LateP95:
		v.Disturbance = fmt.Sprintf("5 %% of the wake-ups of a thread with nothing else to do were late by more "+
			"than %v, expected at most %v", v.WatchP95.Round(time.Microsecond), LateP95)
	case v.WatchP999 > LateP999:
		v.Disturbance = fmt.Sprintf("0.1 %% of the wake-ups of a thread with nothing else to do were late by more "+
			"than %v, expected at most %v", v.WatchP999.Round(time.Microsecond), LateP999)
	}
	return v
}
