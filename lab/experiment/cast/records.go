package cast

import (
	"cmp"
	"slices"
	"time"

	"github.com/volsfu/volsfu/pkg/frametimes"
)

// frameKey identifies a tile's frame at one quality.
type frameKey struct {
	participant, publication string
	tile, quality            int
	number                   int64
}

func keyOf(r *frametimes.Record) frameKey {
	return frameKey{r.Track.Participant, r.Track.Publication, int(r.Track.Tile), int(r.Track.Quality), r.Frame}
}

// Join merges each of a receiver's records with the sender's record of the same frame. It returns the receiver's
// records in the order of capture.
func Join(sent, received []frametimes.Record) []frametimes.Record {
	known := make(map[frameKey]*frametimes.Record, len(sent))
	for i := range sent {
		known[keyOf(&sent[i])] = &sent[i]
	}
	joined := slices.Clone(received)
	for i := range joined {
		if s := known[keyOf(&joined[i])]; s != nil {
			joined[i].Merge(s)
		}
	}
	slices.SortStableFunc(joined, func(a, b frametimes.Record) int {
		return cmp.Compare(a.Times[frametimes.Captured], b.Times[frametimes.Captured])
	})
	return joined
}

// In returns the records of frames that were captured in a window.
func In(records []frametimes.Record, w Window) []frametimes.Record {
	return slices.DeleteFunc(slices.Clone(records), func(r frametimes.Record) bool { return !w.Contains(&r) })
}

// Layer returns the sums of some layers' durations, in milliseconds, for all records that have every one of them.
func Layer(records []frametimes.Record, layers ...frametimes.Layer) []float64 {
	var all []float64
	for i := range records {
		of := records[i].Layers()
		sum, complete := time.Duration(0), true
		for _, layer := range layers {
			d, known := of.Get(layer)
			sum += d
			complete = complete && known
		}
		if complete {
			all = append(all, float64(sum)/float64(time.Millisecond))
		}
	}
	return all
}

// Between returns the times between two stamps, in milliseconds, for all records that have both.
func Between(records []frametimes.Record, from, to frametimes.Stamp) []float64 {
	var all []float64
	for i := range records {
		if r := &records[i]; r.Has(from) && r.Has(to) {
			all = append(all, float64(r.Times[to]-r.Times[from])/1e6)
		}
	}
	return all
}

// Finished reports whether a frame was decoded or shown.
func Finished(r *frametimes.Record) bool { return r.Has(frametimes.Decoded) || r.Has(frametimes.Shown) }
