package subscriber

import (
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// headerShare is the overhead of a packet as a share of a full packet's payload.
	headerShare = float64(congestion.PacketOverhead) / payload.MaxPacketSize
	// audioHeaders is what packet headers add to Opus, which sends 50 small packets per second.
	audioHeaders volumetric.Bitrate = 50 * congestion.PacketOverhead * 8
	// captureDelay stands for the frame interval that passes on average from a decision to the first frame that follows
	// it, and from that frame's capture to its picture: one interval at 30 frames per second, and the time that pacing
	// holds the frame.
	captureDelay = 45 * time.Millisecond
)

// Subscriber is what a room keeps of one receiver in order to decide what the receiver is sent.
type Subscriber struct {
	// Slots are the slots of the present connection, Choices the qualities that the receiver chose.
	Slots   *Slots
	Choices *Choices

	link   Link
	budget *allocate.Budget
	// sparing says that tiles out of sight are sent less than the budget allows, so that the viewpoint matters on any
	// link.
	sparing   bool
	predictor allocate.Predictor
	limits    signal.BitrateLimits
	// arranged are the places of objects that the receiver has put somewhere itself.
	arranged map[volumetric.PublicationRef]allocate.Pose
	// known says that there is an estimate, or the start rate while the first report is awaited. Without one everything
	// is sent as the receiver chose.
	known bool

	layout  layout
	scene   allocate.Scene
	history history
	// uplinkParity is the parity for the sake of publishers' paths, as a share of video.
	uplinkParity float64
	// dropped counts frames that were dropped since the budget was last stepped.
	dropped int
	// stale says that the receiver's choices, or what its slots can carry, have changed since the last decision.
	// deferred says that the next decision was put off for a moment. requested is when the earliest of those changes
	// was asked for.
	stale, deferred bool
	requested       time.Time

	// last is the last decision.
	last decided

	told   signal.Bandwidth
	toldAt time.Time
	// unexplained says that a slot goes on for another reason than the client knows. reasoned is when the client was
	// last told reasons alone.
	unexplained bool
	reasoned    time.Time
}

// decided is what a decision was made with, when, and how long it took.
type decided struct {
	at        time.Time
	took      time.Duration
	changes   Changes
	granted   volumetric.Bitrate
	viewpoint allocate.Viewpoint
	// rate is the rate of the decided qualities, wanted the rate with an unlimited budget.
	rate, wanted volumetric.Bitrate
}

// New returns a subscriber without a link.
func New(slots *Slots, choices *Choices) *Subscriber {
	return &Subscriber{Slots: slots, Choices: choices}
}

// Connect begins with a new connection, of which nothing is known yet. The configuration has been validated.
func (s *Subscriber) Connect(l Link, config allocate.Config) {
	budget, err := allocate.NewBudget(config.Budget)
	if err != nil {
		panic("a configuration is to be validated before it is used: " + err.Error())
	}
	s.link, s.known, s.budget, s.uplinkParity = l, false, budget, 0
	s.sparing = config.Strategy == allocate.StrategyVolsfu && config.View.Unseen != allocate.UnseenFull
	s.layout.stale = true
	l.SetLimits(s.estimateLimits())
}

// SetLimits bounds what the receiver is sent. A receiver may claim a least rate up to claimed, and a start rate up to
// claimed or start, the server's own start rate.
func (s *Subscriber) SetLimits(limits signal.BitrateLimits, claimed, start volumetric.Bitrate) {
	limits.Min, limits.Start = min(limits.Min, claimed), min(limits.Start, max(claimed, start))
	s.limits, s.stale = limits, true
	if s.link != nil {
		s.link.SetLimits(s.estimateLimits())
	}
}

// estimateLimits are those of the estimate of the link's rate.
func (s *Subscriber) estimateLimits() congestion.Limits {
	return congestion.Limits{Min: s.limits.Min, Start: s.limits.Start, Max: s.limits.Max}
}

// Arrange takes the places of objects in the receiver's view, instead of those before.
func (s *Subscriber) Arrange(objects []signal.Placement) {
	s.arranged, s.stale = make(map[volumetric.PublicationRef]allocate.Pose, len(objects)), true
	for _, o := range objects {
		s.arranged[o.PublicationRef] = allocationPose(
			&signal.Pose{Position: o.Position, Orientation: o.Orientation, Scale: o.Scale})
	}
}

// Look takes the receiver's viewpoint, and reports whether it is time for another decision. From rest a turn is
// followed at once. During a motion, decisions are an interval apart, as those of ticks are.
func (s *Subscriber) Look(now time.Time, v allocate.Viewpoint, interval time.Duration) bool {
	s.predictor.Observe(v)
	return s.known && now.Sub(s.last.at) >= interval
}

// looks reports whether the receiver has told its viewpoint.
func (s *Subscriber) looks() bool {
	_, looks := s.predictor.Predict(s.last.at)
	return looks
}

// seenAt returns when the receiver sees what is decided now.
func seenAt(now time.Time, rtt time.Duration) time.Time { return now.Add(rtt/2 + captureDelay) }

// step takes what is known of the path and returns the rate that media may take. It is not ok if there is no estimate.
func (s *Subscriber) step(
	now time.Time, path egress.Path, audio volumetric.Bitrate,
) (granted volumetric.Bitrate, ok bool) {
	if estimated := path.Known || path.Awaited; estimated != s.known {
		s.known, s.stale = estimated, true
	}
	if !s.known {
		return 0, false
	}
	estimate := path.Estimate
	if s.limits.Max > 0 {
		estimate = min(estimate, s.limits.Max)
	}
	granted = s.budget.Step(now, estimate, allocate.BudgetInput{
		Audio: audio, Overhead: s.Overhead(path), DroppedFrames: s.dropped, QueueDelay: path.QueueDelay,
	})
	s.dropped = 0
	return granted, true
}

// Overhead returns what headers, retransmissions and parity add to media, as a share of it.
func (s *Subscriber) Overhead(path egress.Path) float64 {
	return headerShare + path.Loss + s.link.ParityShare() + s.uplinkParity
}

// NeedParity states what the receiver needs of the publications that it takes, and computes how much of that is for the
// sake of publishers' paths.
func (s *Subscriber) NeedParity() {
	own := s.link.ParityShare()
	var video, added float64
	for _, slot := range s.Slots.all {
		if slot.Target == nil || !slot.carries() || slot.Kind != volumetric.KindVideo {
			continue
		}
		publication, tile := slot.Target.Publication, slot.Target.Tile.Tile
		rate := float64(publication.Levels.Rate(tile, slot.Quality))
		video += rate
		track, _ := publication.Track(tile, slot.Quality)
		share := s.link.ParityOf(track)
		if share <= 0 || !publication.Description.Codec.Is(volumetric.MIMEVolumetric) {
			continue
		}
		parity := &publication.Demand.Parity
		parity.Need(share)
		// Parity that the publisher has not been asked for does not come.
		added += rate * max(min(share, parity.Told())-own, 0)
	}
	if s.uplinkParity = 0; added > 0 {
		s.uplinkParity = added / video
	}
}

// audioRate returns what audio takes of the receiver's link.
func (s *Subscriber) audioRate() volumetric.Bitrate {
	var headers volumetric.Bitrate
	for _, slot := range s.Slots.all {
		if slot.Kind == volumetric.KindAudio && slot.carries() {
			headers += audioHeaders
		}
	}
	return s.carriedRate(volumetric.KindAudio) + headers
}

// carriedRate returns the rate of the tracks of a kind that the slots were told to carry, in RTP payload.
func (s *Subscriber) carriedRate(kind volumetric.Kind) volumetric.Bitrate {
	var sum volumetric.Bitrate
	for _, slot := range s.Slots.all {
		if slot.Kind == kind && slot.Target != nil && slot.carries() {
			sum += slot.Target.Publication.Levels.Rate(slot.Target.Tile.Tile, slot.Quality)
		}
	}
	return sum
}
