package admission

import "github.com/volsfu/volsfu/pkg/signal"

// Limits bounds the rooms and places of one bearer.
type Limits struct {
	// Rooms bounds the rooms that a bearer opened and that have not ended. Places bounds its places in all rooms.
	Rooms, Places int
}

// Holdings counts the rooms and places of bearers. Holdings is not safe for concurrent use.
type Holdings struct {
	limits  Limits
	bearers map[Bearer]holding
}

// holding has the counts of one bearer. Only a bearer with a place, or with a room that the bearer opened, has an
// entry, so there are no more entries than places and rooms.
type holding struct {
	// rooms counts the rooms that the bearer opened and that have not ended. The members of these rooms may have other
	// bearers.
	rooms int
	// places counts participants, including those in their grace time, and joins in progress.
	places int
}

// NewHoldings returns empty holdings.
func NewHoldings(limits Limits) *Holdings {
	return &Holdings{limits: limits, bearers: make(map[Bearer]holding)}
}

// Hold counts a place of a bearer, and a room if the bearer opens the room. Hold returns an error if a limit is
// exceeded.
func (h *Holdings) Hold(b Bearer, opens bool) *signal.Error {
	if b == "" {
		return nil
	}
	has := h.bearers[b]
	if has.places >= h.limits.Places {
		return signal.Errorf(signal.CodeLimit,
			"this token or address holds %d places in rooms, the limit is %d (rooms.bearer_places)",
			has.places, h.limits.Places)
	}
	if opens && has.rooms >= h.limits.Rooms {
		return signal.Errorf(signal.CodeLimit,
			"this token or address has opened %d rooms, the limit is %d (rooms.bearer_rooms)",
			has.rooms, h.limits.Rooms)
	}
	has.places++
	if opens {
		has.rooms++
	}
	h.bearers[b] = has
	return nil
}

// Release subtracts places and ended rooms of a bearer.
func (h *Holdings) Release(b Bearer, places, rooms int) {
	if b == "" {
		return
	}
	has := h.bearers[b]
	has.places, has.rooms = has.places-places, has.rooms-rooms
	if has == (holding{}) {
		delete(h.bearers, b)
		return
	}
	h.bearers[b] = has
}

// Len returns the number of bearers with a place or a room.
func (h *Holdings) Len() int { return len(h.bearers) }
