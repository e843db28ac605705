package trunk

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// rateStep is the relative change of a rate that is reported.
const rateStep = 0.05

// stateSet is a set of states of a publication that have to be sent to another node.
type stateSet uint8

const (
	stateTake stateSet = 1 << iota
	stateRates
	stateGaveUp
	stateMasks
	stateParent
)

// updates are the states that have to be sent to another node. A state that changes again before it is sent is sent
// once.
type updates struct {
	due map[publication]stateSet
	// ended are mirrors that were removed. Their demand has to end.
	ended map[publication]struct{}
	// rates are the rates that the other node knows.
	rates map[publication][]volumetric.Bitrate
}

func newUpdates() updates {
	return updates{
		due: map[publication]stateSet{}, ended: map[publication]struct{}{},
		rates: map[publication][]volumetric.Bitrate{},
	}
}

// add adds states of a publication.
func (u *updates) add(p publication, states stateSet) { u.due[p] |= states }

// repeatRates makes the next rates of a publication be sent, whether they have changed or not.
func (u *updates) repeatRates(p publication) { delete(u.rates, p) }

// publications returns the publications with states to send, in a fixed order.
func (u *updates) publications() []publication {
	return slices.SortedFunc(maps.Keys(u.due), func(a, b publication) int {
		return cmp.Or(cmp.Compare(a.Room, b.Room), cmp.Compare(a.ID, b.ID),
			cmp.Compare(a.Participant, b.Participant), cmp.Compare(a.Publication, b.Publication),
			cmp.Compare(a.Home, b.Home))
	})
}

// remove removes and returns the states of a publication.
func (u *updates) remove(p publication) stateSet {
	states := u.due[p]
	delete(u.due, p)
	return states
}

// differ reports whether a rate has changed by rateStep, or has become known or unknown.
func differ(sent, rates []volumetric.Bitrate) bool {
	if len(sent) != len(rates) {
		return true
	}
	for i, rate := range rates {
		if before := sent[i]; (before == 0) != (rate == 0) ||
			math.Abs(float64(rate-before)) >= rateStep*float64(before) && rate != before {
			return true
		}
	}
	return false
}
