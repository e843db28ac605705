package sfu

import (
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// link is what the data plane knows of the way to one receiver. Its methods are safe for the room's goroutine.
type link interface {
	// Path is what is known of the way at present.
	Path() forward.Path
	// Want says what would be sent, on the wire, if the way carried it.
	Want(volumetric.Bitrate)
	// SetLimits bounds the estimate; what is 0 is the server's.
	SetLimits(congestion.Limits)
	// ParityShare is the share of parity packets that the way calls for, and ParityOf what a track is sent with, for the sake of the way to the server, too.
	ParityShare() float64
	ParityOf(*forward.Track) float64
}

// allocator decides what receivers are sent. Its result is valid until the next call.
type allocator interface {
	Allocate(*allocate.Scene) allocate.Result
}

const (
	// headerShare is that as a share of a full packet's payload.
	headerShare = float64(congestion.PacketOverhead) / payload.MaxPacketSize
	// audioHeaders is what they add to Opus, which sends 50 small packets per second.
	audioHeaders volumetric.Bitrate = 50 * congestion.PacketOverhead * 8
	// budgetTolerance is how far the budget rises before what was decided with it is decided anew. One that falls below what is sent always counts.
	budgetTolerance = 0.02
	// refreshInterval is how long a decision stands by itself that leaves something to wish for: what crept in small steps counts then.
	refreshInterval = time.Second
	// allocationSpacing is the least time between two allocations for one receiver: a client that sends a message for each of its tiles costs
	// the room one allocation for all that come so close. In a large room, where one takes longer, it is spacingFactor times what the last one took, so that a
	// receiver that changes its mind all the time takes about a quarter of the room's goroutine; none waits for longer than until the next look at everybody.
	allocationSpacing = 2 * time.Millisecond
	spacingFactor     = 4
	// bandwidthInterval is the least time between two messages about a receiver's bandwidth, and bandwidthTolerance what has to change. A fall to less than fallShare
	// is told at once: a path that shrinks to a quarter is followed within a tenth of a second.
	bandwidthInterval  = 500 * time.Millisecond
	bandwidthTolerance = 0.01
	fallShare          = 0.75
	// improvingShare is the share of its time that a room spends on decisions that are due sometime: with 20 objects of 15 tiles each takes a millisecond, so
	// that 20 receivers are followed ten times per second each.
	improvingShare = 0.25
	// largestDebt is what decisions that could not wait take from that share at most: those that are due sometime follow again within refreshInterval.
	largestDebt = time.Duration(improvingShare * float64(refreshInterval))
	// tickLimit is how long the room decides in one go: so long a choice may have to wait.
	tickLimit = 5 * time.Millisecond
	// reasonInterval is the least time between two messages that say nothing but why.
	reasonInterval = time.Second
	// captureDelay stands for the frame interval that passes on average from a decision to the first frame that follows it, and from that frame's
	// capture to its picture: one interval at 30 frames per second, and what pacing holds it.
	captureDelay = 45 * time.Millisecond
)

// reception is what the room keeps of one receiver for deciding what it is sent.
type reception struct {
	link   link
	budget *allocate.Budget
	// sparing says that tiles out of sight are sent less than the budget would do for, so that it matters where the receiver looks on any link.
	sparing   bool
	predictor allocate.Predictor
	limits    signal.BitrateLimits
	// arranged is where the receiver sees objects, of those that it has put somewhere itself.
	arranged map[volumetric.PublicationRef]allocate.Pose
	// known says that there is an estimate: the start rate while the first report is awaited. Without one everything is sent as the receiver chose.
	known bool

	layout  layout
	scene   allocate.Scene
	history history
	// uplinkParity is what parity for the sake of publishers' ways adds to video, as a share of it.
	uplinkParity float64
	// dropped counts frames that were dropped since the budget was last stepped.
	dropped int
	// stale says that what the receiver chose, or what its slots can carry, has changed since the last decision. deferred says that it was put off
	// for a moment, and requested is when the earliest of those changes was asked for.
	stale, deferred bool
	requested       time.Time

	// What the last decision was made with, when, and how long it took.
	at        time.Time
	took      time.Duration
	around    surroundings
	granted   volumetric.Bitrate
	viewpoint allocate.Viewpoint
	// rate is what was decided to be sent, wanted what would be with an unlimited budget.
	rate, wanted volumetric.Bitrate

	told   signal.Bandwidth
	toldAt time.Time
	// unexplained says that something goes on for another reason than the client knows; reasoned is when it was last told nothing but why.
	unexplained bool
	reasoned    time.Time
}

// connect begins with a new connection, of which nothing is known yet. The configuration has been validated.
func (r *reception) connect(l link, config allocate.Config) {
	budget, err := allocate.NewBudget(config.Budget)
	if err != nil {
		panic("a configuration is to be validated before it is used: " + err.Error())
	}
	r.link, r.known, r.budget, r.uplinkParity = l, false, budget, 0
	r.sparing = config.Strategy == allocate.StrategyVolsfu && config.View.Unseen != allocate.UnseenFull
	r.layout.stale = true
	l.SetLimits(r.estimateLimits())
}

// limit bounds what the receiver is sent. A receiver may say what its link carries, or is to begin with, only up to what the server takes its word for, or begins with by itself.
func (r *reception) limit(limits signal.BitrateLimits, claimed, start volumetric.Bitrate) {
	limits.Min, limits.Start = min(limits.Min, claimed), min(limits.Start, max(claimed, start))
	r.limits, r.stale = limits, true
	if r.link != nil {
		r.link.SetLimits(r.estimateLimits())
	}
}

// estimateLimits are those of the estimate of what the link carries.
func (r *reception) estimateLimits() congestion.Limits {
	return congestion.Limits{Min: r.limits.Min, Start: r.limits.Start, Max: r.limits.Max}
}

// arrange takes where the receiver sees objects, in place of what it said before.
func (r *reception) arrange(objects []signal.Placement) {
	r.arranged, r.stale = make(map[volumetric.PublicationRef]allocate.Pose, len(objects)), true
	for _, o := range objects {
		r.arranged[o.PublicationRef] = allocationPose(&signal.Pose{Position: o.Position, Orientation: o.Orientation, Scale: o.Scale})
	}
}

// step takes what is known of the way and gives what media may take. It is not ok where there is no estimate.
func (r *reception) step(now time.Time, path forward.Path, audio volumetric.Bitrate) (granted volumetric.Bitrate, ok bool) {
	if estimated := path.Known || path.Awaited; estimated != r.known {
		r.known, r.stale = estimated, true
	}
	if !r.known {
		return 0, false
	}
	estimate := path.Estimate
	if r.limits.Max > 0 {
		estimate = min(estimate, r.limits.Max)
	}
	granted = r.budget.Step(now, estimate, allocate.BudgetInput{
		Audio: audio, Overhead: r.overhead(path), DroppedFrames: r.dropped, QueueDelay: path.QueueDelay,
	})
	r.dropped = 0
	return granted, true
}

// overhead is what headers, retransmissions and parity add to media.
func (r *reception) overhead(path forward.Path) float64 {
	return headerShare + path.Loss + r.link.ParityShare() + r.uplinkParity
}

// surroundings count the changes that concern every receiver of a room.
type surroundings struct {
	// offered counts changes of what publishers send at all, rates those of what that costs, motion those of where it stands.
	offered, rates, motion uint64
}

// urgency says how soon another decision is due.
type urgency int

const (
	// notDue: nothing has changed that matters.
	notDue urgency = iota
	// dueSometime: something better may be possible. In a large room not everybody's turn of the head is followed at once.
	dueSometime
	// dueNow: what is sent is too much, or not what it should be.
	dueNow
)

// due says whether enough has changed since the last decision, given what the qualities that are sent cost by now.
func (r *reception) due(now time.Time, granted, carried volumetric.Bitrate, around surroundings, rtt time.Duration) urgency {
	switch {
	case r.stale, r.around.offered != around.offered, carried > granted && (granted < r.granted || r.around.rates != around.rates):
		return dueNow
	case r.around.rates != around.rates:
		return dueSometime
	case r.rate >= r.wanted && granted >= r.wanted && !(r.sparing && r.looks()):
		return notDue // Everything is sent, wherever the receiver looks.
	case float64(granted) > float64(r.granted)*(1+budgetTolerance), r.around.motion != around.motion, now.Sub(r.at) >= refreshInterval:
		return dueSometime
	}
	v, ok := r.predictor.Predict(ahead(now, rtt))
	if ok && (r.scene.Viewpoint == nil || v.FOV != r.viewpoint.FOV || v.Aspect != r.viewpoint.Aspect ||
		apart(v.Position, r.viewpoint.Position, v.Orientation, r.viewpoint.Orientation)) {
		return dueSometime
	}
	return notDue
}

// looks tells whether the receiver has told where it looks.
func (r *reception) looks() bool {
	_, looks := r.predictor.Predict(r.at)
	return looks
}

// look takes where the receiver looks, and tells whether it is time for another decision. From rest a turn is followed at once; on the way decisions are as far apart
// as those that come by themselves.
func (r *reception) look(now time.Time, v allocate.Viewpoint, interval time.Duration) bool {
	r.predictor.Observe(v)
	return r.known && now.Sub(r.at) >= interval
}

// spaced is when the next decision may be made for a receiver that asks for one, given how often everybody is looked at.
func (r *reception) spaced(interval time.Duration) time.Time {
	return r.at.Add(max(allocationSpacing, min(spacingFactor*r.took, interval)))
}

// ahead is when the receiver sees what is decided now.
func ahead(now time.Time, rtt time.Duration) time.Time { return now.Add(rtt/2 + captureDelay) }

// allocate decides what the receiver is sent. The result is valid until the next call.
func (r *reception) allocate(a allocator, now time.Time, granted volumetric.Bitrate, rtt time.Duration, choices *choices) allocate.Result {
	r.layout.fill(&r.scene, choices, r.arranged)
	r.scene.Budget, r.scene.Viewpoint = granted, nil
	if v, ok := r.predictor.Predict(ahead(now, rtt)); ok {
		r.viewpoint = v
		r.scene.Viewpoint = &r.viewpoint
	}
	result := a.Allocate(&r.scene)
	r.at, r.granted, r.stale, r.deferred = now, granted, false, false
	r.rate, r.wanted = result.Rate, result.Wanted
	return result
}

// bandwidth is what to tell the receiver of its link, nil where it knows.
func (r *reception) bandwidth(now time.Time, estimate volumetric.Bitrate) *signal.Bandwidth {
	// Sums of rates that publishers declare may exceed what a message may say.
	m := signal.Bandwidth{
		Estimate: min(estimate, signal.MaxBitrate), Allocated: min(r.rate, signal.MaxBitrate), Wanted: min(r.wanted, signal.MaxBitrate),
	}
	fell := fallen(m.Estimate, r.told.Estimate) || fallen(m.Allocated, r.told.Allocated)
	if now.Sub(r.toldAt) < bandwidthInterval && !fell ||
		near(m.Estimate, r.told.Estimate, bandwidthTolerance) && near(m.Allocated, r.told.Allocated, bandwidthTolerance) &&
			near(m.Wanted, r.told.Wanted, bandwidthTolerance) {
		return nil
	}
	r.told, r.toldAt = m, now
	return &m
}

// fallen tells whether a rate is so much less than before that the client is to know at once.
func fallen(rate, before volumetric.Bitrate) bool { return float64(rate) < fallShare*float64(before) }

// near tells whether a rate differs from what it was before by no more than that share of it.
func near(rate, before volumetric.Bitrate, tolerance float64) bool {
	difference := float64(rate - before)
	return max(difference, -difference) <= tolerance*float64(before)
}
