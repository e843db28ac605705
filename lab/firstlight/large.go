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

// Large sends frames of many megabytes from one publisher to one receiver, and verifies every byte.
type Large struct {
	Progress lab.Progress
	// Frames is the number of frames of each size that must arrive.
	Frames   int
	Deadline time.Duration
	Cases    []LargeCase
}

// LargeCase is a size of frames and their rate per second.
type LargeCase struct {
	Bytes int
	Rate  float64
}

// NewLarge returns the check of the claim: 3.5 MB is a raw depth and colour image. A frame is sent over 0.4 of its
// interval, 200 and 400 ms here, which exceeds the default deadline of 150 ms.
func NewLarge(progress lab.Progress) *Large {
	return &Large{Progress: progress, Frames: 20, Deadline: 2 * time.Second,
		Cases: []LargeCase{{3_500_000, 2}, {8_000_000, 1}}}
}

// Name implements lab.Check.
func (l *Large) Name() string { return "large frames, every byte verified" }

// Run implements lab.Check.
func (l *Large) Run(ctx context.Context) ([]claim.Line, error) {
	var lines []claim.Line
	for _, c := range l.Cases {
		l.Progress.Say("%d frames of %g MB at %g fps", l.Frames, float64(c.Bytes)/1e6, c.Rate)
		found, err := l.measure(ctx, c)
		lines = append(lines, found...)
		if err != nil {
			return lines, fmt.Errorf("frames of %d bytes: %w", c.Bytes, err)
		}
	}
	return lines, nil
}

// measure sends frames of one size. The wait is bounded by three times the duration of the frames.
func (l *Large) measure(ctx context.Context, c LargeCase) ([]claim.Line, error) {
	conference, err := testbed.NewConference(settings(), nil, zap.NewNop())
	if err != nil {
		return nil, err
	}
	defer conference.Close()
	load := testbed.Load{Name: "body", Tiles: 1, Qualities: 1, FrameBytes: c.Bytes, Rate: c.Rate}
	publisher, err := conference.Join(ctx, testbed.Part{Room: "room", Identity: "alice", Loads: []testbed.Load{load},
		MinUplink: testbed.Everything})
	if err != nil {
		return nil, err
	}
	receiver, err := conference.Join(ctx, testbed.Part{Room: "room", Identity: "bob", Receive: true,
		Deadline: l.Deadline, Record: true})
	if err != nil {
		return nil, err
	}
	tile := tileOf("alice", "body", 0)
	sending := time.Duration(float64(l.Frames) / c.Rate * float64(time.Second))
	long, cancel := context.WithTimeout(ctx, connectPatience+3*sending)
	defer cancel()
	// Missing frames show in the figures below.
	waited := awaitFrames(long, receiver, []tileRef{tile}, l.Frames)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	publisher.StopPublishing()
	if err := lab.Pause(ctx, l.Deadline+time.Second); err != nil {
		return nil, err
	}
	stats, reception, latency := statsOf(receiver, tile), receiver.Tile(tile), latencies(receiver.Arrivals())
	name := func(what string) string { return fmt.Sprintf("%g MB: %s", float64(c.Bytes)/1e6, what) }
	return []claim.Line{
		claim.AtLeast(name("frames complete and verified"), float64(reception.Frames), "", float64(l.Frames)),
		claim.Exactly(name("frames with wrong bytes"), int64(reception.Corrupt), "", 0),
		claim.Exactly(name("frames undecodable or missing"), lost(stats.FrameCounts), "", 0),
		claim.Information(name("latency p50"), lab.Milliseconds(latency.Percentile(0.5)), "ms"),
		claim.Information(name("latency max"), lab.Milliseconds(latency.Max()), "ms"),
		claim.Information(name("packets received"), float64(stats.Packets), ""),
		claim.Information(name("packets that had not arrived when due"), float64(stats.Lost), ""),
		claim.Information(name("packets that arrived later"), float64(stats.Recovered), ""),
	}, waited
}
