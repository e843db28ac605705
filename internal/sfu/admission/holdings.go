package admission

import "github.com/volsfu/volsfu/pkg/signal"

// Limits bound the rooms and places of one bearer.
type Limits struct {
	// Rooms bounds the rooms that a bearer opened and that have not ended, Places its places in all rooms.
	Rooms, Places int
}

// Holdings count the rooms and places of bearers. The caller guards them: they are not safe for concurrent use.
type Holdings struct {
	limits  Limits
	bearers map[Bearer]holding
}

// holding is what one bearer has at present. A bearer with a place, or with a room that it opened, has an entry: there
// are no more entries than places and rooms.
type holding struct {
	// rooms that the bearer opened and that have not ended, whoever is in them.
	rooms int
	// places are participants, those in their time of grace included, and joins under way.
	places int
}

// NewHoldings returns the holdings of bearers that have nothing.
func NewHoldings(limits Limits) *Holdings {
	return &Holdings{limits: limits, bearers: make(map[Bearer]holding)}
}

// Hold counts a place of a bearer, and a room if the bearer opens the room, unless the bearer has too many.
func (h *Holdings) Hold(b Bearer, opens bool) *signal.Error {
	if b == "" {
		return nil
	}
	has := h.bearers[b]
	if has.places >= h.limits.Places {
		return refuse(signal.CodeLimit,
			"%d places in rooms are held by this token or address, the limit is %d (rooms.bearer_places)",
			has.places, h.limits.Places)
	}
	if opens && has.rooms >= h.limits.Rooms {
		return refuse(signal.CodeLimit,
			"%d rooms were opened by this token or address, the limit is %d (rooms.bearer_rooms)",
			has.rooms, h.limits.Rooms)
	}
	has.places++
	if opens {
		has.rooms++
	}
	h.bearers[b] = has
	return nil
}

// Release subtracts places of a bearer, and rooms that have ended.
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

// Len returns the number of bearers that have something.
func (h *Holdings) Len() int { return len(h.bearers) }
