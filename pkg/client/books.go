package client

import "github.com/volsfu/volsfu/pkg/volumetric"

// keptBooks is how many tiles' figures are kept: four times the slots that a server gives at most by default. Others in the room publish under names of their own
// choice, without end if they like.
const keptBooks = 4096

// bookOf gives the book of a tile that is assigned to a slot. Where there are too many, it takes the place of the one whose tile went first.
func (m *media) bookOf(track volumetric.TrackRef) *tileBook {
	book := m.books[track]
	if book == nil {
		if len(m.books) >= keptBooks {
			m.closeBook()
		}
		book = &tileBook{track: track}
		m.books[track] = book
	}
	m.assignments++
	book.assigned = m.assignments
	return book
}

// closeBook forgets the tile that was assigned longest ago, of those that are not at present.
func (m *media) closeBook() {
	open := make(map[*tileBook]bool, len(m.streams))
	for _, s := range m.streams {
		open[s.book] = true
	}
	var first *tileBook
	for _, book := range m.books {
		if !open[book] && (first == nil || book.assigned < first.assigned) {
			first = book
		}
	}
	if first != nil {
		delete(m.books, first.track)
	}
}
