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
	// audioHeaders is the rate of packet headers of Opus, which sends 50 small packets per second.
	audioHeaders volumetric.Bitrate = 50 * congestion.PacketOverhead * 8
	// captureDelay is the mean time from a decision to the capture of the first following frame, and from the capture
	// to the frame's picture: one frame interval at 30 frames per second, and the delay of the frame in the pacer.
	captureDelay = 45 * time.Millisecond
)

// Subscriber decides the qualities of one receiver. The room's goroutine owns it.
type Subscriber struct {
	// Slots are the slots of the present connection, Choices the quality choices of the receiver.
	Slots   *Slots
	Choices *Choices

	link   Link
	budget *allocate.Budget
	// sparing is set if tiles out of sight receive less than the budget allows. Then the viewpoint matters on any link.
	sparing   bool
	predictor allocate.Predictor
	limits    signal.BitrateLimits
	// arranged has the poses of objects that the receiver has placed itself.
	arranged map[volumetric.PublicationRef]allocate.Pose
	// known is set if there is an estimate, or the start rate before the first report. If it is not set, the slots
	// carry the chosen qualities.
	known bool

	layout  layout
	scene   allocate.Scene
	history history
	// uplinkParity is the parity that publishers' paths need, as a share of video.
	uplinkParity float64
	// dropped counts the dropped frames since the last step of the budget.
	dropped int
	// stale is set if the receiver's choices or the possible contents of its slots have changed since the last
	// decision. deferred is set if the next decision is deferred. requested is the time of the earliest request among
	// the changes.
	stale, deferred bool
	requested       time.Time

	// last is the last decision.
	last decided

	told   signal.Bandwidth
	toldAt time.Time
	// unexplained is set if the reason of a slot has changed since the client was notified. reasoned is the time of the
	// last message that only changed reasons.
	unexplained bool
	reasoned    time.Time
}

// decided has the inputs, the time and the duration of a decision.
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

// Connect starts a new connection. The estimate and the budget are reset. config must be valid.
func (s *Subscriber) Connect(l Link, config allocate.Config) {
	budget, err := allocate.NewBudget(config.Budget)
	if err != nil {
		panic("the configuration must be validated before use: " + err.Error())
	}
	s.link, s.known, s.budget, s.uplinkParity = l, false, budget, 0
	s.sparing = config.Strategy == allocate.StrategyVolsfu && config.View.Unseen != allocate.UnseenFull
	s.layout.stale = true
	l.SetLimits(s.estimateLimits())
}

// SetLimits bounds the receiver's rate. A receiver may request a minimum rate up to claimed, and a start rate up to the
// greater of claimed and start. start is the server's own start rate.
func (s *Subscriber) SetLimits(limits signal.BitrateLimits, claimed, start volumetric.Bitrate) {
	limits.Min, limits.Start = min(limits.Min, claimed), min(limits.Start, max(claimed, start))
	s.limits, s.stale = limits, true
	if s.link != nil {
		s.link.SetLimits(s.estimateLimits())
	}
}

// estimateLimits returns the limits of the link's estimate.
func (s *Subscriber) estimateLimits() congestion.Limits {
	return congestion.Limits{Min: s.limits.Min, Start: s.limits.Start, Max: s.limits.Max}
}

// Arrange replaces the poses of objects in the receiver's own arrangement.
func (s *Subscriber) Arrange(objects []signal.Placement) {
	s.arranged, s.stale = make(map[volumetric.PublicationRef]allocate.Pose, len(objects)), true
	for _, o := range objects {
		s.arranged[o.PublicationRef] = allocationPose(
			&signal.Pose{Position: o.Position, Orientation: o.Orientation, Scale: o.Scale})
	}
}

// Look stores the receiver's viewpoint and reports whether another decision is due. After a time of rest, a decision
// follows at once. During a motion, decisions are an interval apart, like the decisions of ticks.
func (s *Subscriber) Look(now time.Time, v allocate.Viewpoint, interval time.Duration) bool {
	s.predictor.Observe(v)
	return s.known && now.Sub(s.last.at) >= interval
}

// Looks reports whether the receiver has reported its viewpoint.
func (s *Subscriber) Looks() bool {
	_, looks := s.predictor.Predict(s.last.at)
	return looks
}

// seenAt returns the time when the receiver sees the result of a present decision.
func seenAt(now time.Time, rtt time.Duration) time.Time { return now.Add(rtt/2 + captureDelay) }

// step updates the budget and returns the rate that is available to media, false if there is no estimate.
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

// Overhead returns the overhead of headers, retransmissions and parity as a share of media.
func (s *Subscriber) Overhead(path egress.Path) float64 {
	return headerShare + path.Loss + s.link.ParityShare() + s.uplinkParity
}

// NeedParity states the receiver's need for parity to the received publications and computes the part that is due to
// publishers' paths.
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
		// Only parity that the publisher was asked for arrives.
		added += rate * max(min(share, parity.Told())-own, 0)
	}
	if s.uplinkParity = 0; added > 0 {
		s.uplinkParity = added / video
	}
}

// audioRate returns the rate of audio on the receiver's link, with packet headers.
func (s *Subscriber) audioRate() volumetric.Bitrate {
	var headers volumetric.Bitrate
	for _, slot := range s.Slots.all {
		if slot.Kind == volumetric.KindAudio && slot.carries() {
			headers += audioHeaders
		}
	}
	return s.carriedRate(volumetric.KindAudio) + headers
}

// carriedRate returns the rate of the selected tracks of a kind, in bit/s of RTP payload.
func (s *Subscriber) carriedRate(kind volumetric.Kind) volumetric.Bitrate {
	var sum volumetric.Bitrate
	for _, slot := range s.Slots.all {
		if slot.Kind == kind && slot.Target != nil && slot.carries() {
			sum += slot.Target.Publication.Levels.Rate(slot.Target.Tile.Tile, slot.Quality)
		}
	}
	return sum
}
