package watch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/summary"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/distribution"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// board has the values from which the last line of each publication was printed.
type board struct {
	at   time.Time
	last map[volumetric.PublicationRef]mark
}

// mark has the state of a publication at one time: decoded frame numbers, summed over all tiles, and received bytes.
type mark struct {
	shots int64
	bytes uint64
}

// print prints a line for every publication, about the time since the last line.
func (v *viewer) print() {
	now := v.now()
	took := now.Sub(v.board.at)
	first := v.board.last == nil
	stats := v.volumetricStats(v.session.Stats())
	sum := v.book.Sum(stats, now)
	marks := make(map[volumetric.PublicationRef]mark)
	figures := make(map[volumetric.PublicationRef]*summary.Figures)
	for _, s := range stats {
		m := marks[s.Track.PublicationRef]
		m.bytes += s.Bytes
		marks[s.Track.PublicationRef] = m
	}
	for i := range sum.Publications {
		t := &sum.Publications[i]
		ref := volumetric.PublicationRef{Participant: t.Participant, Publication: t.Publication}
		if figures[ref] == nil {
			figures[ref] = &summary.Figures{}
		}
		figures[ref].Add(&t.Figures)
	}
	for ref, m := range marks {
		m.shots = v.book.Shots(ref)
		marks[ref] = m
	}
	for _, ref := range slices.SortedFunc(maps.Keys(marks), comparePublications) {
		p, present := v.publications[ref]
		latency := v.book.TakeRecent(ref)
		if !present || first || figures[ref] == nil {
			continue
		}
		m, before := marks[ref], v.board.last[ref]
		fps := float64(m.shots-before.shots) / took.Seconds() / float64(len(p.Tiles))
		v.say(watchedLine(ref, v.qualities(ref, &p, now), fps, int64(m.bytes-before.bytes), took, &latency,
			figures[ref]))
	}
	v.board = board{at: now, last: marks}
}

// qualities returns the quality of each tile that was decoded within the last second, "-" if there is none.
func (v *viewer) qualities(ref volumetric.PublicationRef, p *volumetric.Publication, now time.Time) []string {
	since := now.Add(-time.Second)
	list := make([]string, len(p.Tiles))
	for tile := range list {
		part := volumetric.TrackRef{TileRef: volumetric.TileRef{PublicationRef: ref, Tile: tile},
			Quality: volumetric.QualityOff}
		list[tile] = "-"
		if p.Mode != volumetric.ModeDescriptions {
			if q, ok := v.requests.tracker.Current(part, since); ok {
				list[tile] = fmt.Sprint(q)
			}
			continue
		}
		var present []string
		for part.Quality = range volumetric.Quality(len(p.Qualities)) {
			if _, ok := v.requests.tracker.Current(part, since); ok {
				present = append(present, fmt.Sprint(part.Quality))
			}
		}
		if len(present) > 0 {
			list[tile] = strings.Join(present, "+")
		}
	}
	return list
}

func comparePublications(a, b volumetric.PublicationRef) int {
	return cmp.Or(cmp.Compare(a.Participant, b.Participant), cmp.Compare(a.Publication, b.Publication))
}

// watchedLine formats one publication's counters. total is the sum over the tiles.
func watchedLine(ref volumetric.PublicationRef, qualities []string, frames float64, bytes int64, took time.Duration,
	latency *distribution.Distribution, total *summary.Figures) string {
	return fmt.Sprintf("%s  %.1f fps  quality %s  %s  latency %s ms  held %d  undecodable %d  missing %d  skipped %d",
		ref, frames, strings.Join(qualities, " "), peer.RateText(bytes, took), latency.Text(), total.Held,
		total.Undecodable, total.Missing, total.Skipped)
}
