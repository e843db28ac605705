package paths

import (
	"cmp"
	"time"
)

const (
	// A set is acceptable if it misses at most 1 of 1,000 numbers in the long window, or 1 of 500 to 1,000. If the
	// present set misses more than that itself, a smaller set is acceptable if it misses at most 1 of 2,000 numbers
	// more.
	acceptableShare = 1000
	worseShare      = 2000
	// minNumbers is the least number of numbers for a judgement: one missed number is then 5 %. Rules with fewer
	// packets per second keep their copies.
	minNumbers = 20

	// lateShare is the share of late and lost copies above which a path does not contribute.
	lateShare = 0.95
	// lateTime is the time in the set after which a path leaves as late. The first evidence arrives one least delay,
	// one deadline, one report interval and the way back after the start: 20 + 50 + 20 + 30 = 120 ms. The limit for
	// useless paths is 300 ms.
	lateTime = 200 * time.Millisecond
	// lateBanLeast is the time for which a start or losses do not add a late path again: until all its evidence is new.
	// The time doubles for a path whose probes are in time and whose copies are late: its rate is too small.
	lateBanLeast = time.Second
	lateBanMost  = 32 * time.Second

	// manyTime is how long a smaller set of at least two paths must be acceptable.
	manyTime = 250 * time.Millisecond
	// aloneLeast is the same for a single path, which has no protection: most of the long window has then been seen.
	aloneLeast = 800 * time.Millisecond
	aloneMost  = 8 * time.Second
	// tooSoon is the time within which trouble shows that a reduction or a return was wrong.
	tooSoon = 10 * time.Second
	// forgotten is the time without trouble after which waiting times begin at their least value again.
	forgotten = 30 * time.Second

	// growthWaitLeast blocks growth after copies that left too many numbers missed.
	growthWaitLeast = 2 * time.Second
	growthWaitMost  = 32 * time.Second

	// Losses of more than 2 of 1,000 numbers, at least 8 of them, over a decaying count of 8 s make the set grow. A
	// path that loses 0.05 % of 1,000 numbers/s has 4 in that time.
	sustainedShare = 500
	sustainedLeast = 8
	sustainedDecay = 8

	// returnLeast is the time for which the probes of a path must be good before the path returns. Good is a statement
	// about the long window, so that a path returns 1 s + 0.2 s + the way back after it has recovered. With returnMost
	// these are 1 s + 0.8 s + the way back: within 2 s. A return adds copies and takes none away, so that a path that
	// returns too often costs packets and delays none.
	returnLeast = 200 * time.Millisecond
	returnMost  = 800 * time.Millisecond
	// returnProbes is the number of probes and hellos of which one may be lost: a path of table I of paper 003 loses
	// 0.05 % and has 10 hellos and 8 to 20 probes in the long window. A late one shows in the spread of the delays.
	returnProbes = 10
	// returnTrial is the time after its return in which the primary path only leaves if it varies again: 0.8 s until it
	// may stay alone, and 1 s more if a loss delays that.
	returnTrial = 2 * time.Second
	// relapseShare is the share that the other paths may miss if the primary path leaves again.
	relapseShare = 0.01
	// minProbes is the least number of probes and hellos for a judgement of a path outside the set.
	minProbes = 3

	// excessShare is the share of numbers missed above which fewer copies are tried, if at least excessLeast are
	// missed in the short window. excessPath is the least share that each path misses: if one path alone is good, the
	// smaller set is found without a trial.
	excessShare = 0.1
	excessLeast = 5
	excessPath  = 0.2
	// excessTime is the time after growth before fewer copies are tried.
	excessTime = 200 * time.Millisecond
	// retreatTime is the duration of the trial. A queue of 100 ms at a bottleneck with 70 % load drains in
	// 100 / 0.3 = 333 ms; the short window follows.
	retreatTime  = 500 * time.Millisecond
	retreatLeast = time.Second
	retreatMost  = 16 * time.Second
	// retreatWorse is by how much a single path may be worse in a trial.
	retreatWorse = 0.02
)

// observe updates the states of the paths outside the set from their probes.
func (s *Selector) observe() {
	if s.back != 0 && s.now-s.back > tooSoon {
		s.back = 0
		s.again.reset()
	}
	for i := range s.paths {
		if s.usable.Has(i) && !s.set.Has(i) && s.paths[i].state != Down {
			s.move(i, s.standing(i), ReasonProbes)
		}
	}
	if s.paths[0].state != Standby || !s.recovered() {
		s.good = 0
	} else if s.good == 0 {
		s.good = s.now
	}
}

// standing returns the state of a path outside the set: that of its probes, or the present state if there are too few.
// A path that is in time for half of its probes may help.
func (s *Selector) standing(i int) State {
	e := evidence(&s.report.Paths[i])
	switch {
	case e.total >= minProbes && e.missed*2 <= e.total:
		return Standby
	case e.total >= minProbes:
		return Late
	case s.paths[i].state == Active:
		return Unknown
	default:
		return s.paths[i].state
	}
}

// recovered reports whether the probes of the primary path within the long window are in time and steady. One of many
// may be lost, which is no sign of variation.
func (s *Selector) recovered() bool {
	p := &s.report.Paths[0]
	total := int(p.Copies) + int(p.Beats)
	lost := uint16(min(total/returnProbes, 1))
	return total >= minProbes && p.Copies-p.InTime <= lost && p.Slow <= lost && p.BeatsInTime == p.Beats &&
		time.Duration(p.Spread)*delayUnit <= s.deadline/2
}

// removeLate removes paths whose copies are hardly ever in time, as long as a path stays that is in time.
func (s *Selector) removeLate() {
	if s.late(s.best(s.set)) {
		return
	}
	for i := range s.paths {
		if s.set.Has(i) && s.now-s.paths[i].joined >= lateTime && s.late(i) {
			s.leave(i, Late, ReasonLate)
			s.ban(i)
		}
	}
}

// ban keeps a start and losses from adding a path again that has left as late.
func (s *Selector) ban(i int) {
	p := &s.paths[i]
	if s.now-p.banned > forgotten {
		p.ban.reset()
	}
	p.banned = s.now + p.ban.value()
	if p.probed {
		p.ban.double()
	}
}

// late reports whether the copies of a path are hardly ever in time.
func (s *Selector) late(i int) bool {
	t := missedLong(s.report.Rows, of(i))
	return t.total >= minNumbers && t.share() > lateShare
}

// reduce chooses the cheapest set that is acceptable for long enough.
func (s *Selector) reduce() {
	whole := missedLong(s.report.Rows, s.set)
	if s.set.Len() < 2 || whole.total < minNumbers {
		return
	}
	var chosen Set
	for i := range s.acceptable {
		c := Set(i)
		switch {
		case c == 0 || c == s.set || !s.set.contains(c):
			continue
		case s.back != 0 && s.now-s.back < returnTrial && !c.Has(0): // see readmit
			continue
		case !s.suffices(c, whole):
			s.acceptable[i] = 0
			continue
		case s.acceptable[i] == 0:
			s.acceptable[i] = s.now
		}
		if s.now-s.acceptable[i] >= s.patience(c) && (chosen == 0 || s.cheaper(c, chosen)) {
			chosen = c
		}
	}
	if chosen == 0 {
		return
	}
	if chosen.Len() == 1 && whole.missed*sustainedShare > whole.total {
		s.block()
	}
	s.reduceTo(chosen, ReasonNotNeeded)
}

// suffices reports whether a smaller set is acceptable, given the tally of the present one.
func (s *Selector) suffices(set Set, whole tally) bool {
	t := missedLong(s.report.Rows, set)
	allowed := max((t.total+acceptableShare/2)/acceptableShare, whole.missed*t.total/whole.total+t.total/worseShare)
	return t.total >= minNumbers && t.missed <= allowed
}

// patience returns how long a set must be acceptable. A single path that varies waits twice as long.
func (s *Selector) patience(set Set) time.Duration {
	switch {
	case set.Len() > 1:
		return manyTime
	case s.unsteady(set) > 0:
		return 2 * s.alone.value()
	default:
		return s.alone.value()
	}
}

// cheaper reports whether set c is preferred to set d: fewer paths, fewer unsteady paths, paths earlier in the
// configuration.
func (s *Selector) cheaper(c, d Set) bool {
	return cmp.Or(cmp.Compare(c.Len(), d.Len()), cmp.Compare(s.unsteady(c), s.unsteady(d)), cmp.Compare(c, d)) < 0
}

// unsteady returns the number of paths of a set that vary.
func (s *Selector) unsteady(set Set) int {
	n := 0
	for i := range s.paths {
		if set.Has(i) && !steady(&s.report.Paths[i]) {
			n++
		}
	}
	return n
}

// watchLosses adds a path if the set has missed too many numbers over several seconds.
func (s *Selector) watchLosses() {
	if s.now-s.counted < longSlots*slotTime {
		return
	}
	s.counted = s.now
	t := missedLong(s.report.Rows, s.set)
	l := &s.sustained
	l.numbers += float64(t.total) - l.numbers/sustainedDecay
	l.missed += float64(t.missed) - l.missed/sustainedDecay
	if l.missed < sustainedLeast || l.missed*sustainedShare <= l.numbers || s.now < s.blocked {
		return
	}
	if standby := s.allowed(Standby); standby != 0 {
		s.punish()
		s.join(s.best(standby), ReasonLosses)
	}
}

// allowed returns the usable paths in a state that are not banned.
func (s *Selector) allowed(state State) Set {
	var set Set
	for i := range s.paths {
		if p := &s.paths[i]; s.usable.Has(i) && p.state == state && s.now >= p.banned {
			set |= of(i)
		}
	}
	return set
}

// readmit adds the primary path when it has recovered, and removes it again as soon as it varies while the others miss
// little. Other paths return when a trigger starts copies: until then the set does not need them.
func (s *Selector) readmit() {
	others := s.set &^ of(0)
	if s.back != 0 && others != 0 && s.unsteady(of(0)) > 0 &&
		missedLong(s.report.Rows, others).share() <= relapseShare {
		s.leave(0, s.standing(0), ReasonRelapsed)
		return
	}
	if s.now >= s.returnAt && s.good != 0 && s.now-s.good >= s.again.value() {
		s.join(0, ReasonRecovered)
		s.good, s.back = 0, s.now
	}
}

// crowd begins a trial with one path if all paths of the set are late together, as when the copies share a bottleneck.
// If the paths miss independently, the set misses the product of their shares; if all miss the same numbers, it misses
// as many as its best path. The limit is half way. If nothing at all arrives, copies are not the cause.
func (s *Selector) crowd() {
	r := &s.retreat
	if s.set.Len() < 2 || s.now-s.grew < excessTime || s.now < r.next {
		return
	}
	whole := missedShort(s.report.Rows, s.set)
	if whole.total < minNumbers || whole.missed < excessLeast || whole.share() < excessShare {
		return
	}
	product, least, arrives := 1.0, 1.0, false
	for i := range s.paths {
		if !s.set.Has(i) {
			continue
		}
		missed := missedShort(s.report.Rows, of(i)).share()
		if missed < excessPath {
			return
		}
		product *= missed
		least = min(least, missed)
		arrives = arrives || delivers(&s.report.Paths[i])
	}
	if !arrives || whole.share() < (product+least)/2 {
		return
	}
	r.active, r.from, r.missed, r.began = true, s.set, whole.share(), s.now
	s.reduceTo(of(s.best(s.set)), ReasonCrowded)
}

// judgeRetreat ends the trial with one path when its numbers are known.
func (s *Selector) judgeRetreat() {
	r := &s.retreat
	t := missedShort(s.report.Rows, s.set)
	if s.now-r.began < retreatTime || t.total < minNumbers {
		return
	}
	r.active = false
	if t.share() <= r.missed+retreatWorse {
		s.block()
		s.returnAt = s.blocked
		s.sustained = losses{}
		return
	}
	if s.now-r.next > forgotten {
		r.wait.reset()
	}
	r.next = s.now + r.wait.value()
	r.wait.double()
	for i := range s.paths {
		if r.from.Has(i) && s.usable.Has(i) {
			s.join(i, ReasonRestored)
		}
	}
}

// block prevents growth after copies that did not help.
func (s *Selector) block() {
	if s.now-s.blocked > forgotten {
		s.growthWait.reset()
	}
	s.blocked = s.now + s.growthWait.value()
	s.growthWait.double()
}

// punish doubles the waiting times of decisions that the present trouble shows to be wrong.
func (s *Selector) punish() {
	if s.set.Has(0) {
		s.returnFailed()
	}
	switch {
	case s.reduced == 0 || s.set.Len() > 1:
	case s.now-s.reduced < tooSoon:
		s.alone.double()
	case s.now-s.reduced > forgotten:
		s.alone.reset()
	}
}

// returnFailed doubles the time for which the primary path must be good, if it has returned within tooSoon.
func (s *Selector) returnFailed() {
	if s.back != 0 {
		s.again.double()
		s.back = 0
	}
}
