package adaptation

import (
	"context"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

// Saving makes a receiver subscribe to one tile of a publication at its highest quality, and to the others at the
// lowest or not at all. Saving measures the publisher's traffic under each policy.
type Saving struct {
	Progress lab.Progress
	Load     testbed.Load
	// Window is the measured time; Settle is the wait before it.
	Window, Settle time.Duration
	// Hold is the time for which the policy neighbours keeps unused tracks.
	Hold time.Duration
	// Share is the largest traffic under the policy strict, relative to the policy warm, under which all tracks are
	// sent. One of 15 tiles at four units and 14 at one are 17 % of 15 tiles at seven.
	Share float64
	Seed  uint64
}

// NewSaving returns the check of the claim.
func NewSaving(progress lab.Progress) *Saving {
	return &Saving{Progress: progress, Load: body, Window: 10 * time.Second, Settle: time.Second, Hold: 2 * time.Second,
		Share: 0.25, Seed: 1}
}

// Name implements lab.Check.
func (s *Saving) Name() string {
	return fmt.Sprintf("one of %d tiles is wanted at the highest of %d qualities: the publisher's traffic upstream",
		s.Load.Tiles, s.Load.Qualities)
}

// others are the receiver's choices for all tiles except the first.
var others = []struct {
	name    string
	quality volumetric.Quality
}{{"the others at the lowest", 0}, {"no other tile", volumetric.QualityOff}}

// Run implements lab.Check.
func (s *Saving) Run(ctx context.Context) ([]claim.Line, error) {
	var lines []claim.Line
	var everything []float64
	for _, policy := range policies {
		s.Progress.Say("policy %s for %v", policy, time.Duration(len(others))*(s.Hold+s.Settle+s.Window))
		rates, err := s.measure(ctx, policy)
		if err != nil {
			return lines, fmt.Errorf("policy %s: %w", policy, err)
		}
		if policy == demand.Warm {
			everything = rates
		}
		for i, rate := range rates {
			name := fmt.Sprintf("%s, %s", policy, others[i].name)
			lines = append(lines, claim.Information(name+": sent", rate/1e6, "Mbit/s"))
			share := 100 * rate / everything[i]
			switch policy {
			case demand.Neighbours:
				lines = append(lines, claim.Information(name+": share of the traffic of all tracks", share, "%"))
			case demand.Strict:
				lines = append(lines, claim.AtMost(name+": share of the traffic of all tracks", share, "%",
					100*s.Share))
			}
		}
	}
	return lines, nil
}

// measure returns the bits per second that leave the publisher's host under a policy, for each choice of others: media,
// retransmissions, probes, reports, and all headers.
func (s *Saving) measure(ctx context.Context, policy demand.Policy) ([]float64, error) {
	config := testbed.ConferenceConfig()
	config.Rooms.Suppression = demand.Config{Policy: policy, Hold: s.Hold}
	conference, err := testbed.NewEmulation(config, s.Seed)
	if err != nil {
		return nil, err
	}
	defer conference.Close()
	// Access links carry all tracks. The traffic of the publisher's link is counted.
	access := netem.DefaultConfig()
	_, host, err := conference.JoinOver(ctx, access, testbed.Part{Room: "room", Identity: publisherName,
		Loads: []testbed.Load{s.Load}, Seed: s.Seed})
	if err != nil {
		return nil, err
	}
	receiver, _, err := conference.JoinOver(ctx, access, testbed.Part{Room: "room", Identity: "bob", Receive: true})
	if err != nil {
		return nil, err
	}
	if err := awaitHighest(ctx, receiver, s.Load); err != nil {
		return nil, err
	}
	var rates []float64
	for _, other := range others {
		if err := s.subscribeToOne(ctx, receiver, other.quality); err != nil {
			return nil, err
		}
		sent := func() uint64 {
			up, _ := conference.Network.AccessStats(host)
			return up.SentBytes
		}
		rate, err := s.count(ctx, sent)
		if err != nil {
			return nil, err
		}
		rates = append(rates, rate)
	}
	return rates, receiver.Failure()
}

// count returns the rate of sent, a counter of bytes, in bit/s, once the previously used tracks are suppressed.
func (s *Saving) count(ctx context.Context, sent func() uint64) (float64, error) {
	if err := lab.Pause(ctx, s.Hold+s.Settle); err != nil {
		return 0, err
	}
	before, begin := sent(), time.Now()
	if err := lab.Pause(ctx, s.Window); err != nil {
		return 0, err
	}
	return float64(8*(sent()-before)) / time.Since(begin).Seconds(), nil
}

// subscribeToOne makes the receiver choose the first tile at the highest quality.
func (s *Saving) subscribeToOne(ctx context.Context, receiver *testbed.Peer, others volumetric.Quality) error {
	first, publication := 0, publicationOf(s.Load)
	return receiver.Session.SetQuality(ctx,
		signal.Choice{PublicationRef: publication, Quality: signal.Only(others)},
		signal.Choice{PublicationRef: publication, Tile: &first,
			Quality: signal.Only(volumetric.Quality(s.Load.Qualities - 1))},
	)
}
