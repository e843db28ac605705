// SPDX-FileCopyrightText: 2026 The Pion community <https://pion.ly>
// SPDX-License-Identifier: MIT

package gcc

import (
	"time"
)

type arrivalGroup struct {
	departure time.Time
	// began is the arrival of the first packet, arrival the arrival of the last packet.
	began   time.Time
	arrival time.Time
}

func newArrivalGroup(a Acknowledgment) arrivalGroup {
	return arrivalGroup{
		departure: a.Departure,
		began:     a.Arrival,
		arrival:   a.Arrival,
	}
}

func (g *arrivalGroup) add(a Acknowledgment) {
	g.arrival = a.Arrival
}
