package router

import (
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

// Statistics are the counters of a Router since it was started, or since the last Restart.
type Statistics struct {
	// Duration is how long that is.
	Duration time.Duration
	// Wires are in the order of the plan.
	Wires []WireStatistics
	// Interfaces are in the order of the plan, all of one namespace after the other.
	Interfaces []InterfaceStatistics
	// Late is how much later than on the emulated network packets were handed over: what of them was read late, at most, and what was written late.
	Late netem.DelayCounts
	// ReadLate and WriteLate are the two parts.
	ReadLate, WriteLate netem.DelayCounts
	// Watch is how late a thread was that only wakes up, every 5 ms, with a real-time priority. Unwatched says that the kernel
	// gives no such priority; nothing is counted then.
	Watch     netem.DelayCounts
	Unwatched bool
	// Unroutable counts packets for which the plan has no route, such as multicast; Malformed counts what is no IPv4 packet; Refused counts packets that a namespace's
	// kernel did not take.
	Unroutable, Malformed, Refused uint64
	// CPU is the processor time of the router's thread.
	CPU time.Duration
	// Blind says that the system does not tell how long the thread has waited for a processor, so that ReadLate does not contain that.
	Blind bool
}

// InterfaceStatistics are the counters of an interface.
type InterfaceStatistics struct {
	Namespace, Name string
	// Sent is what the namespace sent, Received what it was given.
	Sent, SentBytes, Received, ReceivedBytes uint64
	// Overrun counts packets that the kernel dropped because the router did not read them in time.
	Overrun uint64
}

// Packets is the number of packets that reached the end of their route.
func (s *Statistics) Packets() uint64 { return s.Late.Count() }

// The rule of Validity.
const (
	// LateP95 bounds what 95 % of the packets may be late: what the emulation promises of a delay. Round trips of 1 ms are emulated to a factor of 2 then, and
	// a packet time at 25 Mbit/s, the least rate that volumetric video is sent with, is not exceeded.
	LateP95 = 500 * time.Microsecond
	// LateP999 bounds what 99.9 % may be late. Beyond some 10 ms lateness looks like a queue to a congestion controller (the threshold of the overuse detector in GCC
	// begins at 12.5 ms) and costs a frame its place in a frame interval of 33 ms.
	LateP999 = 10 * time.Millisecond
)

// Validity judges whether a router was in time, and whether the machine was. A router may be late because of the packets that it
// has to pass: a burst of many packets is late, whatever the machine does otherwise. That is a result of whatever sends the burst.
// Only a disturbance, which is told by a thread that has nothing to do with packets, is a reason to discard a run.
type Validity struct {
	// Valid says that all of these hold: 95 % of the packets were late by at most LateP95, 99.9 % by at most LateP999, and no packet was dropped before it was read.
	Valid bool `json:"valid"`
	// Reason says in a sentence what does not hold; empty if Valid.
	Reason string `json:"reason,omitempty"`
	// Disturbance says in a sentence how the machine was late, whatever passed; empty if it was not, or if that is not known.
	Disturbance string `json:"disturbance,omitempty"`
	// WatchP95 and WatchP999 are quantiles of the lateness of the thread that tells of disturbances.
	WatchP95  time.Duration `json:"watch_p95_ns"`
	WatchP999 time.Duration `json:"watch_p999_ns"`
	// Unwatched says that the kernel gives that thread no priority, so that no disturbance is known.
	Unwatched bool `json:"unwatched,omitempty"`
	// P50, P95, P999 and Max are quantiles of the packets' lateness.
	P50  time.Duration `json:"late_p50_ns"`
	P95  time.Duration `json:"late_p95_ns"`
	P999 time.Duration `json:"late_p999_ns"`
	Max  time.Duration `json:"late_max_ns"`
	// Overrun counts packets that were dropped because the router did not read them in time.
	Overrun uint64 `json:"overrun"`
	// Packets is the number of packets that this is about.
	Packets uint64 `json:"packets"`
}

// Validity judges by the rule of Validity.Valid.
func (s *Statistics) Validity() Validity {
	v := Validity{
		WatchP95: s.Watch.Quantile(0.95), WatchP999: s.Watch.Quantile(0.999), Unwatched: s.Unwatched,
		P50: s.Late.Quantile(0.5), P95: s.Late.Quantile(0.95), P999: s.Late.Quantile(0.999), Max: s.Late.Quantile(1), Packets: s.Packets(),
	}
	for i := range s.Interfaces {
		v.Overrun += s.Interfaces[i].Overrun
	}
	switch {
	case v.Overrun > 0:
		v.Reason = fmt.Sprintf("the router left %d packets unread until the kernel dropped them", v.Overrun)
	case v.P95 > LateP95:
		v.Reason = fmt.Sprintf("of the packets 5 %% were late by more than %v, expected at most %v", v.P95.Round(time.Microsecond), LateP95)
	case v.P999 > LateP999:
		v.Reason = fmt.Sprintf("of the packets 0.1 %% were late by more than %v, expected at most %v", v.P999.Round(time.Microsecond), LateP999)
	}
	v.Valid = v.Reason == ""
	switch {
	case v.WatchP95 > LateP95:
		v.Disturbance = fmt.Sprintf("5 %% of the wake-ups of a thread with nothing else to do were late by more than %v, expected at most %v", v.WatchP95.Round(time.Microsecond), LateP95)
	case v.WatchP999 > LateP999:
		v.Disturbance = fmt.Sprintf("0.1 %% of the wake-ups of a thread with nothing else to do were late by more than %v, expected at most %v", v.WatchP999.Round(time.Microsecond), LateP999)
	}
	return v
}
