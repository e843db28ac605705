// Package peer runs one end of a transport with the client of package carriage. It implements vollab peer, which
// experiments start once for each host.
//
// Run owns the end that it opens. Its goroutines have ended when Run returns.
package peer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab/baseline"
	"github.com/volsfu/volsfu/lab/carriage"
)

// Config selects the end, the published content and the watching.
type Config struct {
	End     baseline.Config
	Publish carriage.PublishConfig
	Watch   carriage.WatchConfig
	// Frames is a file of prepared frames. Without it, Material is encoded live with Workers threads, which also
	// decode.
	Frames   string
	Material carriage.Material
	Workers  int
	// Duration is the time of publishing and watching after the connection to the other end, or the time a server runs;
	// 0 means until the context ends.
	Duration time.Duration
	// Records is a file for the times of frames, Decisions a file with decisions on quality; "" means none.
	Records, Decisions string
	// Listening, if not nil, receives the address of the listening end.
	Listening func(address string)
}

// DefaultConfig watches and publishes with the defaults of package carriage.
func DefaultConfig() Config {
	return Config{End: baseline.DefaultConfig(), Publish: carriage.DefaultPublish(), Watch: carriage.DefaultWatch(),
		Material: carriage.DefaultMaterial()}
}

// Run runs until its time is over, the other end has ended, or the context ends. The end of the context is not an
// error.
func Run(ctx context.Context, c Config) (summary *carriage.Summary, err error) {
	listening := c.Listening
	if listening == nil {
		listening = func(string) {}
	}
	began := time.Now()
	summary = &carriage.Summary{Transport: string(c.End.Transport), Role: string(c.End.Role), Name: c.End.Name}
	if c.End.Role == baseline.RoleServer {
		err = c.serve(ctx, listening, summary)
	} else {
		err = c.join(ctx, listening, summary)
	}
	summary.Seconds, summary.CPU = time.Since(began).Seconds(), carriage.ProcessCPU()
	return summary, err
}

// serve runs a server.
func (c *Config) serve(ctx context.Context, listening func(string), summary *carriage.Summary) error {
	if c.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Duration)
		defer cancel()
	}
	relayed, err := baseline.Serve(ctx, c.End, listening)
	summary.Server = relayed
	return err
}

// join runs a client.
func (c *Config) join(ctx context.Context, listening func(string), summary *carriage.Summary) (err error) {
	var feed carriage.Feed
	if c.End.Role.Publishes() {
		if feed, err = c.feed(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, feed.Close()) }()
		c.End.Publication = feed.Publication()
	}
	if err := c.decisions(); err != nil {
		return err
	}
	records, err := carriage.CreateRecords(c.Records)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	end, err := baseline.Open(ctx, c.End, listening)
	if err != nil {
		return err
	}
	err = c.run(ctx, feed, end, records, summary)
	return errors.Join(err, end.Close())
}

// feed opens the published content.
func (c *Config) feed(ctx context.Context) (carriage.Feed, error) {
	if c.Frames != "" {
		return carriage.OpenPrepared(c.Frames, c.Publish.FPS)
	}
	return carriage.OpenLive(ctx, c.Material, c.Publish.FPS, c.Workers)
}

// decisions reads the file of decisions.
func (c *Config) decisions() error {
	if c.Decisions == "" {
		return nil
	}
	file, err := os.Open(c.Decisions)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if c.Watch.Decisions, err = carriage.ReadDecisions(file); err != nil {
		return fmt.Errorf("%s: %w", c.Decisions, err)
	}
	return nil
}

// sink discards the frames of an end that only publishes.
type sink struct{}

// Take implements carriage.Taker.
func (sink) Take(*carriage.Arrival) {}

// run publishes and watches until both are over.
func (c *Config) run(ctx context.Context, feed carriage.Feed, end carriage.End, records *carriage.Records,
	summary *carriage.Summary) error {
	var taker carriage.Taker = sink{}
	var watcher *carriage.Watcher
	if c.End.Role.Watches() {
		w := c.Watch
		w.Tiles, w.Quality, w.Workers, w.Duration, w.Name, w.Of = c.End.Tiles, c.End.Quality, c.Workers, c.Duration,
			c.End.Name, c.End.Watched
		var err error
		if watcher, err = carriage.NewWatcher(end, w, records); err != nil {
			return err
		}
		taker = watcher
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var moving, working sync.WaitGroup
	ended := make(chan struct{})
	var moveErr, publishErr, watchErr error
	moving.Go(func() {
		defer close(ended)
		moveErr = end.Run(ctx, taker)
		// Without the other end, publishing is impossible. A client that also watches may have lost only the watched
		// end.
		if watcher == nil || moveErr != nil && !errors.Is(moveErr, carriage.ErrEnded) {
			cancel()
		}
	})
	publishing, watched := context.WithCancel(ctx)
	defer watched()
	if feed != nil {
		working.Go(func() {
			p := c.Publish
			if watcher == nil {
				p.Duration = c.Duration // by default the duration of the whole run
			}
			summary.Sent, publishErr = carriage.Publish(publishing, feed, end, p, c.End.Name, records)
		})
	}
	if watcher != nil {
		working.Go(func() {
			defer watched()
			summary.Got, watchErr = watcher.Run(ctx, ended)
		})
	}
	working.Wait()
	summary.Congestion = congestion(end)
	cancel()
	moving.Wait()
	if errors.Is(moveErr, carriage.ErrEnded) {
		moveErr = nil
	}
	return errors.Join(moveErr, publishErr, watchErr)
}

// congestion returns the congestion control of an end over TCP.
func congestion(end carriage.End) string {
	if named, ok := end.(interface{ Congestion() string }); ok {
		return named.Congestion()
	}
	return ""
}
