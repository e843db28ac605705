package signalling

import (
	"maps"
	"slices"
	"sync"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Requested is the state that the server has accepted from this client. A server that continues the session without
// this state is sent it again. The methods are safe for concurrent use. The zero value is empty.
type Requested struct {
	mu      sync.Mutex
	choices map[choiceKey]signal.Choice
	muted   map[string]bool
	limits  signal.BitrateLimits
}

// choiceKey names the tile of a choice. tile is wholePublication for all tiles.
type choiceKey struct {
	ref  volumetric.PublicationRef
	tile int
}

const wholePublication = -1

// Choose stores accepted choices. A choice for a publication replaces the choices for its tiles. exists reports whether
// a publication exists: at the limit, choices for others are removed. Otherwise a choice outlives a publisher's
// reconnect, as on the server.
func (r *Requested) Choose(choices []signal.Choice, exists func(volumetric.PublicationRef) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.choices == nil {
		r.choices = make(map[choiceKey]signal.Choice)
	}
	for _, c := range choices {
		key := choiceKey{c.PublicationRef, wholePublication}
		if c.Tile != nil {
			key.tile = *c.Tile
		} else {
			maps.DeleteFunc(r.choices, func(k choiceKey, _ signal.Choice) bool { return k.ref == c.PublicationRef })
		}
		_, known := r.choices[key]
		if !known && len(r.choices) >= signal.MaxChoices {
			maps.DeleteFunc(r.choices, func(k choiceKey, _ signal.Choice) bool { return !exists(k.ref) })
		}
		if known || len(r.choices) < signal.MaxChoices {
			r.choices[key] = c
		}
	}
}

// Mute stores the muting of an own publication.
func (r *Requested) Mute(publication string, muted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.muted == nil {
		r.muted = make(map[string]bool)
	}
	r.muted[publication] = muted
}

// Limit stores the limits of the downlink.
func (r *Requested) Limit(limits signal.BitrateLimits) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limits = limits
}

// Limits returns the limits of the downlink, which every join has.
func (r *Requested) Limits() signal.BitrateLimits {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.limits
}

// Messages returns the messages that request the state again. published reports whether an own publication exists.
func (r *Requested) Messages(published func(name string) bool) []signal.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []signal.Message
	if len(r.choices) > 0 {
		choices := make([]signal.Choice, 0, len(r.choices))
		for _, c := range r.choices {
			choices = append(choices, c)
		}
		// Choices for publications precede choices for their tiles.
		slices.SortFunc(choices, func(a, b signal.Choice) int {
			switch {
			case (a.Tile == nil) == (b.Tile == nil):
				return 0
			case a.Tile == nil:
				return -1
			}
			return 1
		})
		list = append(list, &signal.SetQuality{Choices: choices})
	}
	for _, name := range slices.Sorted(maps.Keys(r.muted)) {
		if published(name) {
			list = append(list, &signal.Mute{Publication: name, Muted: r.muted[name]})
		}
	}
	return list
}
