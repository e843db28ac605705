package publish

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/produce"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/opus"
	"github.com/volsfu/volsfu/internal/peer/picture"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// feed produces the frames of a publication. *produce.Producer implements it.
type feed interface {
	Run(ctx context.Context, sink produce.Sink) error
	Counts() produce.Counts
	Close()
}

// broadcast is a publication in progress.
type broadcast struct {
	producer    feed
	sink        produce.Sink
	description volumetric.Publication
	sound       *opus.Recording
	pose        *client.Pose
	voice       voice
	// pictures are sent beside the object, each to the publisher with the same index in screens.
	pictures []*picture.Player
	screens  []*client.Publisher
	console  io.Writer
	log      *slog.Logger

	began, ended time.Time
	total        produce.Counts
	uplink       client.UplinkStats
	spoken       soundCounts
}

// presence is the part of a session that a broadcast uses. *client.Session implements it.
type presence interface {
	Events() <-chan client.Event
	Uplink() client.UplinkStats
	Done() <-chan struct{}
	Err() error
}

// run publishes when media flows. The end of the context or of the time limit is not an error.
func (b *broadcast) run(ctx context.Context, session presence, seconds float64) error {
	if err := connected(ctx, session, b.log); err != nil || ctx.Err() != nil {
		return err
	}
	ctx, cancel := peer.Limit(ctx, seconds)
	defer cancel()
	b.began = time.Now()
	var running sync.WaitGroup
	failures := make(chan error, 2+len(b.pictures))
	running.Go(func() { failures <- b.producer.Run(ctx, carrying{b.sink, session}) })
	if b.sound != nil {
		running.Go(func() { failures <- b.speak(ctx) })
	}
	for i, player := range b.pictures {
		running.Go(func() { failures <- player.Run(ctx, b.screens[i]) })
	}
	err := b.follow(ctx, session, failures)
	cancel()
	running.Wait()
	b.take(time.Now())
	b.uplink = session.Uplink()
	return err
}

// carrying is a sink with the uplink estimate of a session.
type carrying struct {
	produce.Sink
	session presence
}

// Uplink implements produce.Uplink.
func (c carrying) Uplink() volumetric.Bitrate { return c.session.Uplink().Estimate }

// connected waits until media flows.
func connected(ctx context.Context, session presence, log *slog.Logger) error {
	for {
		select {
		case e, open := <-session.Events():
			if !open {
				return session.Err()
			}
			peer.LogEvent(log, e)
			if _, ok := e.(client.Connected); ok {
				return nil
			}
		case <-session.Done():
			return session.Err()
		case <-ctx.Done():
			return nil
		}
	}
}

// follow prints a line every second until the broadcast ends.
func (b *broadcast) follow(ctx context.Context, session presence, failures <-chan error) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	events := session.Events()
	for last := b.began; ; {
		select {
		case e, open := <-events:
			if !open {
				events = nil
				continue
			}
			if wanted, ok := e.(client.KeyFrameWanted); ok {
				b.wantKeyFrame(wanted)
			}
			peer.LogEvent(b.log, e)
		case now := <-ticker.C:
			counts := b.take(now)
			if b.description.Name == "" {
				continue
			}
			_, _ = fmt.Fprintln(b.console, producedLine(b.description.Name, &counts, session.Uplink().Estimate,
				now.Sub(last)))
			last = now
		case err := <-failures:
			if err != nil {
				return err
			}
		case <-session.Done():
			return session.Err()
		case <-ctx.Done():
			return nil
		}
	}
}

// take adds the counters since the last call to the total.
func (b *broadcast) take(now time.Time) produce.Counts {
	counts := b.producer.Counts()
	b.total.Add(counts)
	b.ended = now
	return counts
}
