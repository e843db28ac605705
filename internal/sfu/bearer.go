package sfu

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/volsfu/volsfu/pkg/signal"
)

// Bearer is what rooms and places are counted by: a token, or an address if the client has no token. Nothing is counted
// for the empty bearer.
type Bearer string

// Token identifies a client's token. It is zero for a client without a token.
type Token struct {
	// ID is the claim jti, empty for a token that has none: such a token cannot be revoked.
	ID string
	// Expires is when the token ends.
	Expires time.Time
}

// holding is what one bearer has at present. A bearer with a place, or with a room that it opened, has an entry: there
// are no more entries than places and rooms.
type holding struct {
	// rooms that the bearer opened and that have not ended, whoever is in them.
	rooms int
	// places are participants, those in their time of grace included, and joins under way.
	places int
}

// hold counts a place of a bearer, and a room if the bearer opens the room. The caller holds the node's mutex.
func (n *Node) hold(b Bearer, opens bool) *signal.Error {
	if b == "" {
		return nil
	}
	h := n.holdings[b]
	if h.places >= n.config.BearerPlaces {
		return refuse(signal.CodeLimit,
			"%d places in rooms are held by this token or address, the limit is %d (rooms.bearer_places)",
			h.places, n.config.BearerPlaces)
	}
	if opens && h.rooms >= n.config.BearerRooms {
		return refuse(signal.CodeLimit, "%d rooms were opened by this token or address, the limit is %d (rooms.bearer_rooms)",
			h.rooms, n.config.BearerRooms)
	}
	h.places++
	if opens {
		h.rooms++
	}
	n.holdings[b] = h
	return nil
}

// release counts a place of a bearer less, or a room that has ended. The caller holds the
// node's mutex.
func (n *Node) release(b Bearer, places, rooms int) {
	if b == "" {
		return
	}
	h := n.holdings[b]
	h.places, h.rooms = h.places-places, h.rooms-rooms
	if h == (holding{}) {
		delete(n.holdings, b)
		return
	}
	n.holdings[b] = h
}

// placesOf is how many participants of the room have their place by a bearer, without one that is about to be replaced.
func (r *Room) placesOf(b Bearer, replaced *participant) (places int) {
	for _, p := range r.participants {
		if p.bearer == b && p != replaced {
			places++
		}
	}
	return places
}

const (
	// announceRate is how many bytes per second one bearer may have each of the others in a room be told, by joining
	// and publishing, in the long run: 512 kbit/s, a hundredth of the media of a body at 50 Mbit/s. At once it is the
	// descriptions of a full room (description_bytes), which one bearer has if all of the room come again with one
	// token: after 24 s with the default the bearer has all of it again.
	announceRate = 64 << 10
	// announceOverhead is what a join costs beside its descriptions: participant_joined and participant_left have 60
	// bytes each, and an identity of up to 128 bytes.
	announceOverhead = 256
	// leastAnnouncing keeps sweeps of the bearers' budgets rare in small rooms.
	leastAnnouncing = 64
)

// announces takes the bytes that the others are told from the budget of a bearer, unless the budget has less.
func (r *Room) announces(b Bearer, bytes int) *signal.Error {
	if b == "" || len(r.participants) == 0 {
		return nil
	}
	burst := r.node.config.DescriptionBytes
	budget := r.announcing[b]
	if budget == nil {
		r.forgetAnnouncing()
		budget = rate.NewLimiter(announceRate, burst)
		r.announcing[b] = budget
	}
	if !budget.AllowN(r.now, min(bytes, burst)) {
		return refuse(signal.CodeLimit,
			"the others would be told %d bytes: by one token or address they are told %d bytes per second, and %d at once",
			bytes, announceRate, burst)
	}
	return nil
}

// forgetAnnouncing drops the budgets that are full, when there are twice as many as after the last time.
func (r *Room) forgetAnnouncing() {
	if len(r.announcing) < r.announcingSweep {
		return
	}
	for b, budget := range r.announcing {
		if budget.TokensAt(r.now) >= float64(budget.Burst()) {
			delete(r.announcing, b)
		}
	}
	r.announcingSweep = max(leastAnnouncing, 2*len(r.announcing))
}
