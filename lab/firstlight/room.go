package firstlight

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

// Room fills a room, makes one more participant join and leave several times, and measures the reception of that
// participant and of the residents.
type Room struct {
	Progress lab.Progress
	// Participants is the number of participants once the last has joined.
	Participants int
	Load         testbed.Load
	// Rounds is the number of joins and leaves of the last participant.
	Rounds int
	// Window is the time in which gaps are measured: before, from each join, and from each leave.
	Window time.Duration
	// JoinTime is the time limit for a join, from opening the websocket to the first frame of the last tile.
	JoinTime time.Duration
	// Gap is the longest permitted time without a frame of a tile for the residents.
	Gap time.Duration
	// Lines is the size of the measured session description.
	Lines int
}

// NewRoom returns the check of the claim. A stream counts as uninterrupted if no tile misses a frame and the gap
// between two frames is at most three frame intervals (100 ms): the interval itself, one interval for the jitter
// between two frames while no participant joins or leaves, and one for the join. Another 50 ms are for an effect of the
// lab: the clients' part of the join runs on the server's cores as well.
func NewRoom(progress lab.Progress) *Room {
	return &Room{
		Progress:     progress,
		Participants: 10,
		Load:         testbed.Load{Name: "body", Tiles: 15, Qualities: 2, FrameBytes: 1000, Rate: 30},
		Rounds:       5,
		Window:       5 * time.Second,
		JoinTime:     time.Second,
		Gap:          150 * time.Millisecond,
		Lines:        300,
	}
}

// Name implements lab.Check.
func (r *Room) Name() string {
	return fmt.Sprintf("a room of %d with %d tiles × %d qualities each, frames of %d bytes at %g fps",
		r.Participants, r.Load.Tiles, r.Load.Qualities, r.Load.FrameBytes, r.Load.Rate)
}

// Run implements lab.Check.
func (r *Room) Run(ctx context.Context) ([]claim.Line, error) {
	description, err := measureDescription(r.Lines)
	if err != nil {
		return nil, err
	}
	room, err := r.fill(ctx)
	if err != nil {
		return description, err
	}
	defer room.conference.Close()
	outcome := roomOutcome{check: r}
	if outcome.quiet, err = room.watch().view(ctx, r.Window); err != nil {
		return description, err
	}
	for round := range r.Rounds {
		r.Progress.Say("joining %d of %d", round+1, r.Rounds)
		if err := outcome.round(ctx, room); err != nil {
			return append(outcome.lines(), description...), err
		}
	}
	return append(outcome.lines(), description...), room.failure()
}

// fill joins all participants except the last and waits until every participant receives all tiles.
func (r *Room) fill(ctx context.Context) (*fullRoom, error) {
	conference, err := testbed.NewConference(settings(), nil, zap.NewNop())
	if err != nil {
		return nil, err
	}
	room := &fullRoom{check: r, conference: conference}
	for i := range r.Participants - 1 {
		name := fmt.Sprintf("resident-%d", i)
		p, err := room.join(ctx, name)
		if err == nil {
			err = room.complete(ctx, p)
		}
		if err != nil {
			conference.Close()
			return nil, err
		}
		room.peers, room.names = append(room.peers, p), append(room.names, name)
	}
	r.Progress.Say("%d participants are in the room", len(room.peers))
	for i, p := range room.peers {
		for j, name := range room.names {
			if i == j {
				continue
			}
			if err := awaitFlow(ctx, p, tilesOf(name, r.Load.Name, r.Load.Tiles), 5); err != nil {
				conference.Close()
				return nil, err
			}
		}
	}
	return room, nil
}
