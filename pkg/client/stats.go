package client

import (
	"cmp"
	"slices"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TileStats are the counts of one received tile since the beginning of the session.
type TileStats struct {
	// Track names the tile. Its quality is volumetric.QualityOff, but in volumetric.ModeDescriptions it names the description.
	Track volumetric.TrackRef
	FrameCounts
	// Packets and Bytes are RTP packets received, retransmissions included, and the bytes of their payloads.
	Packets, Bytes uint64
	// Lost packets did not come when they were due; Recovered ones of them came later, by retransmission or since the publisher had owed them. Spared
	// ones of them never came, and were not needed: their frame was complete without them, by parity.
	Lost, Recovered, Spared uint64
	// Replaced are the source packets that parity made up for, of frames that were completed: they were lost, or came too late to matter.
	Replaced uint64
	// Gaps are sequence numbers that the media stream left out for the time being, Repeats packets that came on it again. Retransmissions have a
	// stream of their own and count as neither.
	Gaps, Repeats uint64
	// Requests are packets asked for by NACK, repeats included.
	Requests uint64
}

// Stats gives the counts of every tile that was ever received, in the order of their names. Of more than 4096 tiles those are left out that went first.
func (s *Session) Stats() []TileStats {
	m := s.media
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []TileStats
	for _, book := range m.books {
		nacks := book.nacks
		for _, stream := range m.streams {
			if stream.book == book {
				nacks = book.requests(stream.nacks.Stats())
			}
		}
		list = append(list, TileStats{
			Track:       book.track,
			FrameCounts: book.ledger.counts,
			Packets:     book.packets,
			Bytes:       book.bytes,
			Lost:        nacks.Recovered + nacks.Lost + nacks.Spared,
			Recovered:   nacks.Recovered,
			Spared:      nacks.Spared,
			Replaced:    book.replaced,
			Gaps:        book.breaks.gaps,
			Repeats:     book.breaks.repeats,
			Requests:    nacks.Asked,
		})
	}
	slices.SortFunc(list, func(a, b TileStats) int { return compareTracks(a.Track, b.Track) })
	return list
}

func compareTracks(a, b volumetric.TrackRef) int {
	return cmp.Or(
		cmp.Compare(a.Participant, b.Participant),
		cmp.Compare(a.Publication, b.Publication),
		cmp.Compare(a.Tile, b.Tile),
		cmp.Compare(a.Quality, b.Quality),
	)
}
