// SPDX-FileCopyrightText: 2026 The Pion community <https://pion.ly>
// SPDX-License-Identifier: MIT

package gcc

import (
	"time"
)

// burstDuration is the longest duration of a group of arrivals; Pion has no such limit. It is libwebrtc's
// kMaxBurstDuration.
const burstDuration = 100 * time.Millisecond

type arrivalGroupAccumulator struct {
	interDepartureThreshold          time.Duration
	interArrivalThreshold            time.Duration
	interGroupDelayVariationTreshold time.Duration
	// longest is the longest duration of a group, 0 for no bound.
	longest time.Duration

	init  bool
	group arrivalGroup
}

func newArrivalGroupAccumulator() *arrivalGroupAccumulator {
	return &arrivalGroupAccumulator{
		interDepartureThreshold:          5 * time.Millisecond,
		interArrivalThreshold:            5 * time.Millisecond,
		interGroupDelayVariationTreshold: 0,
		longest:                          burstDuration,
	}
}

func (a *arrivalGroupAccumulator) run(in <-chan []Acknowledgment, agWriter func(arrivalGroup)) {
	for acks := range in {
		for _, next := range acks {
			a.add(next, agWriter)
		}
	}
}

func (a *arrivalGroupAccumulator) add(next Acknowledgment, agWriter func(arrivalGroup)) {
	if !a.init {
		a.group = newArrivalGroup(next)
		a.init = true

		return
	}
	if next.Arrival.Before(a.group.arrival) {
		// ignore out of order arrivals
		return
	}
	if next.Departure.After(a.group.departure) {
		// A sequence of packets which are sent within a burst_time interval
		// constitute a group.
		if interDepartureTimePkt(a.group, next) <= a.interDepartureThreshold {
			a.group.add(next)

			return
		}

		// A Packet which has an inter-arrival time less than burst_time and
		// an inter-group delay variation d(i) less than 0 is considered
		// being part of the current group of packets.
		if interArrivalTimePkt(a.group, next) <= a.interArrivalThreshold &&
			(a.longest == 0 || next.Arrival.Sub(a.group.began) < a.longest) &&
			interGroupDelayVariationPkt(a.group, next) < a.interGroupDelayVariationTreshold {
			a.group.add(next)

			return
		}

		agWriter(a.group)
		a.group = newArrivalGroup(next)
	}
}

func interArrivalTimePkt(group arrivalGroup, ack Acknowledgment) time.Duration {
	return ack.Arrival.Sub(group.arrival)
}

func interDepartureTimePkt(group arrivalGroup, ack Acknowledgment) time.Duration {
	return ack.Departure.Sub(group.departure)
}

func interGroupDelayVariationPkt(group arrivalGroup, ack Acknowledgment) time.Duration {
	return ack.Arrival.Sub(group.arrival) - ack.Departure.Sub(group.departure)
}
