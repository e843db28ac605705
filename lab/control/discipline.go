package control

import (
	"fmt"
	"math"
	"strings"

	"github.com/volsfu/volsfu/internal/netem"
)

// queueLimit is the capacity of queues other than FIFO, in ms at the mean rate.
const queueLimit = 100

// discipline is the queue of a bottleneck.
type discipline struct {
	name  string // one of netem.QueueFIFO and the other disciplines
	bytes int    // capacity
	mean  int    // mean rate of the link, in bit/s
}

// parseDiscipline parses a queue, NAME or NAME:MS, of a link with a mean rate in bit/s.
func parseDiscipline(text string, mean int) (discipline, error) {
	name, parameter, limited := strings.Cut(text, ":")
	ms := float64(queueLimit)
	if limited {
		var err error
		if ms, err = number(text, parameter, 1, 10_000); err != nil {
			return discipline{}, err
		}
	}
	switch {
	case name == netem.QueueFIFO && limited, name == netem.QueueCoDel, name == netem.QueueFQ,
		name == netem.QueueDualPI2, name == netem.QueuePaper000:
		return discipline{name, int(math.Ceil(float64(mean) * ms / 8e3)), mean}, nil
	}
	return discipline{}, fmt.Errorf("%w: queue %q, expected fifo:MS, codel, fq, dualpi2 or paper000", ErrCase, text)
}

// queue returns a new queue.
func (d discipline) queue() netem.Queue {
	switch d.name {
	case netem.QueueCoDel:
		return netem.NewCoDel(d.bytes)
	case netem.QueueFQ:
		return netem.NewFairQueue(d.bytes)
	case netem.QueueDualPI2:
		return netem.NewDualPI2(d.bytes)
	case netem.QueuePaper000:
		return netem.NewL4SPriority(d.mean, d.bytes)
	}
	return netem.NewDropTail(d.bytes)
}
