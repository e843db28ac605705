package presence

import (
	"slices"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Roster has the participants of all nodes that are visible in a room, by identity. The zero value is empty.
type Roster struct{ present map[string]*Presence }

// Add adds a participant. A participant with the same identity is replaced.
func (r *Roster) Add(p *Presence) {
	if r.present == nil {
		r.present = make(map[string]*Presence)
	}
	r.present[p.Identity] = p
}

// Remove removes a participant, if the roster has it.
func (r *Roster) Remove(p *Presence) {
	if r.present[p.Identity] == p {
		delete(r.present, p.Identity)
	}
}

// Len returns the number of participants.
func (r *Roster) Len() int { return len(r.present) }

// Get returns the participant with an identity, nil if there is none.
func (r *Roster) Get(identity string) *Presence { return r.present[identity] }

// Others returns the participants except one, sorted by identity.
func (r *Roster) Others(except *Presence) []*Presence {
	var list []*Presence
	for _, p := range r.present {
		if p != except {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *Presence) int { return strings.Compare(a.Identity, b.Identity) })
	return list
}

// Describe returns the descriptions of all announced participants except one.
func (r *Roster) Describe(except *Presence) []signal.Participant {
	list := []signal.Participant{}
	for _, p := range r.Others(except) {
		if !p.Audience {
			list = append(list, p.Describe())
		}
	}
	return list
}

// Publication returns a publication by its names, nil if there is none.
func (r *Roster) Publication(ref volumetric.PublicationRef) *Publication {
	if p := r.present[ref.Participant]; p != nil {
		return p.Publication(ref.Publication)
	}
	return nil
}

// Has reports whether a participant publishes the publication.
func (r *Roster) Has(ref volumetric.PublicationRef) bool { return r.Publication(ref) != nil }

// Publications yields all publications in any order, for range.
func (r *Roster) Publications(yield func(*Publication) bool) {
	for _, p := range r.present {
		for _, publication := range p.Publications {
			if !yield(publication) {
				return
			}
		}
	}
}

// PublishedByOthers returns the announced publications of all participants except one.
func (r *Roster) PublishedByOthers(except *Presence) []*Publication {
	var publications []*Publication
	for _, other := range r.Others(except) {
		publications = append(publications, Announced(other.Publications)...)
	}
	return publications
}

// firstFreeNumber is the first number of participants whose identity does not end in a number. Numbers in identities
// are positions in a list of users, which are smaller.
const firstFreeNumber = 1000

// AssignNumber assigns the number by which VR2Gather clients know a participant: the number at the end of its identity,
// if there is one and no other participant has the number; otherwise a free number from firstFreeNumber.
func (r *Roster) AssignNumber(p *Presence) {
	if p.Numbered {
		return
	}
	digits := p.Identity[len(strings.TrimRight(p.Identity, "0123456789")):]
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || n == 0 || r.ByNumber(uint32(n)) != nil {
		for n = firstFreeNumber; r.ByNumber(uint32(n)) != nil; n++ {
		}
	}
	p.Number, p.Numbered = uint32(n), true
}

// ByNumber returns the participant with a number, nil if there is none.
func (r *Roster) ByNumber(number uint32) *Presence {
	for _, p := range r.present {
		if p.Numbered && p.Number == number {
			return p
		}
	}
	return nil
}

// AudienceSize returns the number of participants that are not announced.
func (r *Roster) AudienceSize() (n int) {
	for _, p := range r.present {
		if p.Audience {
			n++
		}
	}
	return n
}

// DescribedBytes returns the length of the descriptions of all participants except the one with an identity, in bytes.
func (r *Roster) DescribedBytes(except string) (sum int) {
	for identity, p := range r.present {
		if identity != except {
			sum += p.DescribedBytes()
		}
	}
	return sum
}
