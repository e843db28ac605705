package paths

import "github.com/volsfu/volsfu/internal/netfn/wire"

// tally counts numbers or copies, and how many of them were missed.
type tally struct{ total, missed int }

// share returns the missed share, 0 without numbers.
func (t tally) share() float64 {
	if t.total == 0 {
		return 0
	}
	return float64(t.missed) / float64(t.total)
}

// add counts n numbers of one row.
func (t *tally) add(n uint16, missed bool) {
	t.total += int(n)
	if missed {
		t.missed += int(n)
	}
}

// missedLong returns what a set would have missed in the long window, of the numbers that left on all paths of the set.
func missedLong(rows []wire.Row, set Set) tally {
	var t tally
	for _, row := range rows {
		if Set(row.Sent).contains(set) {
			t.add(row.Long, Set(row.InTime)&set == 0)
		}
	}
	return t
}

// missedShort returns the same for the short window.
func missedShort(rows []wire.Row, set Set) tally {
	var t tally
	for _, row := range rows {
		if Set(row.Sent).contains(set) {
			t.add(row.Short, Set(row.InTime)&set == 0)
		}
	}
	return t
}

// only returns the share of the numbers in the long window that left on a path and on others, and that this path alone
// delivered in time.
func only(rows []wire.Row, path int) float64 {
	var t tally
	for _, row := range rows {
		if sent := Set(row.Sent); sent.Has(path) && sent.Len() > 1 {
			t.add(row.Long, Set(row.InTime) == of(path))
		}
	}
	return t.share()
}

// evidence returns the copies and hellos of a path in the long window, and how many of them were late or lost.
func evidence(p *wire.PathReport) tally {
	return tally{total: int(p.Copies) + int(p.Beats),
		missed: int(p.Copies-p.InTime) + int(p.Beats-p.BeatsInTime)}
}

// delivers reports whether copies or hellos of a path arrive, in time or not.
func delivers(p *wire.PathReport) bool { return p.Beats > 0 || p.Copies > p.Lost }

// steady reports whether at most 5 % of a path's copies are slow.
func steady(p *wire.PathReport) bool { return int(p.Slow)*20 <= int(p.Copies) }
