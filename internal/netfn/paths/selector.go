package paths

import (
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/wire"
)

const (
	// defaultDeadline is the deadline of a Config without one.
	defaultDeadline = 50 * time.Millisecond

	// silentAfter is the age of the last report from which on nothing is known of the present.
	silentAfter = 200 * time.Millisecond

	// minProbeDivisor is the divisor for one probed path: 1/128 = 0.8 % of the packets. 1/100 is the limit of all
	// probes together, so that 2 paths have 2/256, 3 to 5 paths 5/512, and 6 and 7 paths 7/1024.
	minProbeDivisor = 128
)

// Config describes the paths of a rule.
type Config struct {
	Paths    int           // number of configured paths, 1 to 8; path 0 is the primary path
	Deadline time.Duration // of the rule, as the Observer has it; 0 is 50 ms
}

// Decision says on which paths the sender puts each packet.
type Decision struct {
	Set     Set    // paths on which each packet leaves; never empty
	Probes  Set    // other paths, on which every packet leaves whose number is a multiple of Divisor
	Divisor uint32 // a power of two
}

// Selector chooses the paths of a rule from reports. The package comment states the rules.
type Selector struct {
	deadline   time.Duration
	configured Set
	available  Set // paths whose interface is up
	usable     Set // available, or all configured paths if none is available

	now      time.Duration
	set      Set
	paths    [wire.MaxPaths]path
	report   wire.Report
	applied  time.Duration // time of the last report
	reported bool          // report is valid

	grew       time.Duration                     // when a path last joined
	acceptable [1 << wire.MaxPaths]time.Duration // since when each smaller set is acceptable; 0 if it is not
	alone      backoff                           // acceptable time before a path stays alone
	reduced    time.Duration                     // when a path last stayed alone
	growthWait backoff                           // time without growth after copies that did not help
	blocked    time.Duration                     // until then the set does not grow
	returnAt   time.Duration                     // until then the primary path does not return
	good       time.Duration                     // since when the primary path outside the set has recovered; 0 if not
	again      backoff                           // good time before the primary path returns
	back       time.Duration                     // when the primary path last returned; 0 if that has been judged
	retreat    retreat
	sustained  losses
	counted    time.Duration // when sustained last changed

	changes []Change
}

// path is the state of one path.
type path struct {
	state  State
	since  time.Duration
	reason Reason
	joined time.Duration // when the path last joined the set
	probed bool          // the path joined because its probes were in time
	// The path has left as late: until banned, losses do not add it, and triggers only if no other path can help. ban
	// is the duration of the next ban.
	banned time.Duration
	ban    backoff
}

// losses is a decaying count of what the set misses.
type losses struct{ numbers, missed float64 }

// retreat is a trial with fewer copies.
type retreat struct {
	active bool
	from   Set
	missed float64 // share that from missed
	began  time.Duration
	wait   backoff       // time between trials
	next   time.Duration // no trial before
}

// NewSelector returns the selector of a rule. Until a trigger starts copies, packets leave on the primary path. Paths
// beyond 1 to 8 are taken as the nearest of these.
func NewSelector(c Config) *Selector {
	if c.Deadline <= 0 {
		c.Deadline = defaultDeadline
	}
	s := &Selector{deadline: c.Deadline, set: of(0), alone: backoff{least: aloneLeast, most: aloneMost},
		again:      backoff{least: returnLeast, most: returnMost},
		growthWait: backoff{least: growthWaitLeast, most: growthWaitMost},
		retreat:    retreat{wait: backoff{least: retreatLeast, most: retreatMost}}}
	s.configured = Set(1<<min(max(c.Paths, 1), wire.MaxPaths) - 1)
	s.available, s.usable = s.configured, s.configured
	for i := range s.paths {
		s.paths[i].ban = backoff{least: lateBanLeast, most: lateBanMost}
		switch {
		case i == 0:
			s.paths[i].state = Active
		case s.configured.Has(i):
			s.paths[i].state = Unknown
		}
	}
	return s
}

// Available states the paths whose interface is up. Other paths leave the set, unless none is left.
func (s *Selector) Available(set Set, now time.Duration) {
	s.tick(now)
	set &= s.configured
	if set == s.available {
		return
	}
	s.available, s.usable = set, set
	for i := range s.paths {
		switch p := &s.paths[i]; {
		case s.configured.Has(i) && !s.usable.Has(i):
			s.leave(i, Down, ReasonDown)
		case s.usable.Has(i) && p.state == Down:
			s.move(i, Unknown, ReasonUp)
		}
	}
	if s.usable == 0 {
		s.usable = s.configured
	}
	if s.set == 0 {
		s.join(s.best(s.usable), ReasonLast)
	}
}

// Start adds the paths that may help: all that are in time or unknown, else the best of the others.
func (s *Selector) Start(now time.Duration) {
	s.tick(now)
	if now < s.blocked && !s.failing() || s.retreat.active {
		return
	}
	helpful := s.allowed(Standby) | s.allowed(Unknown)
	if others := s.usable &^ s.set; helpful == 0 && others != 0 && s.failing() {
		helpful = of(s.best(others))
	}
	if helpful == 0 {
		return
	}
	s.punish()
	for i := range s.paths {
		if helpful.Has(i) {
			s.join(i, ReasonStarted)
		}
	}
}

// Stop ends the copies until the next Start. The best path stays.
func (s *Selector) Stop(now time.Duration) {
	s.tick(now)
	s.retreat.active = false
	s.reduceTo(of(s.best(s.set)), ReasonStopped)
}

// Apply takes a report about the present epoch. A report that is not newer than the last one has no effect, unless the
// last one is 1 s old: then the receiver has restarted.
func (s *Selector) Apply(r *wire.Report, now time.Duration) {
	s.tick(now)
	if s.reported && !r.Newer(s.report.Serial) && s.now-s.applied < wire.ReportLifetime {
		return
	}
	rows := append(s.report.Rows[:0], r.Rows...)
	s.report = *r
	s.report.Rows = rows
	s.applied, s.reported = s.now, true
	s.observe()
	if s.retreat.active {
		s.judgeRetreat()
		return
	}
	s.removeLate()
	s.reduce()
	s.watchLosses()
	s.readmit()
	s.crowd()
}

// Step returns what to do now.
func (s *Selector) Step(now time.Duration) Decision {
	s.tick(now)
	d := Decision{Set: s.set, Probes: s.usable &^ s.set, Divisor: minProbeDivisor}
	for int(d.Divisor) < 100*d.Probes.Len() {
		d.Divisor *= 2
	}
	return d
}

// tick advances the time, which never runs backwards, and ends a trial of which no report tells.
func (s *Selector) tick(now time.Duration) {
	s.now = max(s.now, now)
	if s.retreat.active && s.now-s.retreat.began >= 4*retreatTime {
		s.retreat.active = false
	}
}

// best returns the path of a non-empty set with the smallest share of late and lost copies. Paths that deliver are
// better than others, and the order of the configuration decides between equal paths.
func (s *Selector) best(set Set) int {
	found, least := -1, 0.0
	for i := range s.paths {
		if !set.Has(i) {
			continue
		}
		missed := 0.0
		switch p := &s.report.Paths[i]; {
		case s.paths[i].state == Down:
			missed = 4
		case s.reported && !delivers(p):
			missed = 3
		case s.reported:
			missed = evidence(p).share()
			if missed > lateShare {
				missed = 1 + float64(p.Delay)/(1<<16) // none is in time: the fastest
			}
		}
		if found < 0 || missed < least {
			found, least = i, missed
		}
	}
	return found
}

// failing reports whether the set misses at least half of the numbers at present, or no report says so.
func (s *Selector) failing() bool {
	t := missedShort(s.report.Rows, s.set)
	return s.now-s.applied > silentAfter || t.missed*2 >= t.total
}

// join adds a path to the set.
func (s *Selector) join(i int, reason Reason) {
	s.set |= of(i)
	s.paths[i].joined, s.paths[i].probed = s.now, s.paths[i].state == Standby
	s.grew = s.now
	s.acceptable = [1 << wire.MaxPaths]time.Duration{}
	s.sustained = losses{}
	s.move(i, Active, reason)
}

// leave removes a path from the set, or only changes its state if the path is not in the set.
func (s *Selector) leave(i int, state State, reason Reason) {
	if i == 0 {
		s.returnFailed()
	}
	s.set &^= of(i)
	s.move(i, state, reason)
}

// move changes the state of a path.
func (s *Selector) move(i int, state State, reason Reason) {
	p := &s.paths[i]
	if p.state == state {
		return
	}
	if (p.state == Active) != (state == Active) {
		if len(s.changes) < maxChanges {
			s.changes = append(s.changes, Change{At: s.now, Path: i, Joined: state == Active, Reason: reason})
		}
	}
	p.state, p.since, p.reason = state, s.now, reason
}

// reduceTo removes the paths outside set.
func (s *Selector) reduceTo(set Set, reason Reason) {
	for i := range s.paths {
		if s.set.Has(i) && !set.Has(i) {
			s.leave(i, s.standing(i), reason)
		}
	}
	s.sustained = losses{}
	if s.set.Len() == 1 {
		s.reduced = s.now
	}
}

// Changes returns the paths that have joined or left the set since the last call, at most 64.
func (s *Selector) Changes() []Change {
	changes := slices.Clone(s.changes)
	s.changes = s.changes[:0]
	return changes
}

// Paths returns the state of each configured path.
func (s *Selector) Paths() []PathState {
	var states []PathState
	for i := range s.paths {
		if !s.configured.Has(i) {
			break
		}
		p, r := &s.paths[i], &s.report.Paths[i]
		state := PathState{State: p.state, Since: p.since, Reason: p.reason, Only: only(s.report.Rows, i),
			Delay: time.Duration(r.Delay) * delayUnit}
		if e := evidence(r); e.total > 0 {
			state.InTime = 1 - e.share()
		}
		state.Loss = tally{total: int(r.Copies), missed: int(r.Lost)}.share()
		states = append(states, state)
	}
	return states
}
