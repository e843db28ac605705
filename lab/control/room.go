package control

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// roomWindow is the time before the mark over which estimates are averaged, and the time after the mark that is left
// out: a sender that halves its rate reaches its new rate within it.
const roomWindow = 5 * time.Second

// RoomFigures compares the estimates of a room's hops before and while the first participant's uplink is marked.
type RoomFigures struct {
	// Hops are the uplinks of all participants, and then the downlinks. The first is the marked one.
	Hops []HopFigures `json:"hops"`
	// LargestChange is the largest relative change of the mean estimate of the other hops.
	LargestChange float64 `json:"largest_change"`
}

// HopFigures holds the mean estimates of one hop, in Mbit/s: in the 5 s before the mark, and from 5 s after the mark
// on.
type HopFigures struct {
	Hop        string  `json:"hop"`
	Before     float64 `json:"before_mbps"`
	WhileMarks float64 `json:"while_marked_mbps"`
}

// join connects the downlinks of a room to the uplinks. Each downlink has one object of four tiles. The tiles are those
// of other participants in turn, in the highest quality that the publisher's uplink carries.
func (s *Simulation) join() {
	n := s.scenario.participants
	for i := range n {
		s.flows[n+i].adaptation.available = func(tile int) volumetric.Quality {
			publisher := (i + 1 + tile%(n-1)) % n
			return s.flows[publisher].adaptation.qualities[tile]
		}
	}
}

// room sets the figures of a room.
func (r *Record) room(result *Result) {
	n, mark, end := r.scenario.participants, r.scenario.rivals, r.scenario.options.Duration
	figures := &RoomFigures{}
	settled := min(mark+roomWindow, mark+(end-mark)/2)
	var sum, squares float64
	for i, l := range r.receivers {
		h := HopFigures{Hop: fmt.Sprintf("uplink %d", i+1)}
		if i >= n {
			h.Hop = fmt.Sprintf("downlink %d", i-n+1)
		}
		var rate float64
		h.Before, rate = l.means(mark-roomWindow, mark)
		h.WhileMarks, _ = l.means(settled, end)
		figures.Hops = append(figures.Hops, h)
		if i >= n {
			sum += rate
			squares += rate * rate
		}
		if i > 0 {
			figures.LargestChange = max(figures.LargestChange, math.Abs(h.WhileMarks/h.Before-1))
		}
	}
	result.Room, result.JainIndex = figures, figure(sum*sum/(float64(n)*squares))
}

// means returns the mean estimate, in Mbit/s, and the mean rate of decodable media, in bit/s, of the samples in
// (from, until].
func (l *ledger) means(from, until time.Duration) (estimate, goodput float64) {
	count := 0.0
	for _, x := range l.samples {
		if x.at > from && x.at <= until {
			estimate += x.estimate / 1e6
			goodput += x.goodput
			count++
		}
	}
	return estimate / max(count, 1), goodput / max(count, 1)
}

// write writes the figures as rows of a table.
func (f *RoomFigures) write(table io.Writer) {
	for i, h := range f.Hops {
		name := "estimate, " + h.Hop
		if i == 0 {
			name += " (marked)"
		}
		_, _ = fmt.Fprintf(table, "%s\t%.1f Mbit/s, while marked %.1f\n", name, h.Before, h.WhileMarks)
	}
	_, _ = fmt.Fprintf(table, "largest change of the others' estimates\t%.1f %%\n", 100*f.LargestChange)
}
