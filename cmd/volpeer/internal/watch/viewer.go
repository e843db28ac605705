package watch

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/choice"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/decode"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/present"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/summary"
	"github.com/volsfu/volsfu/internal/peer/opus"
	"github.com/volsfu/volsfu/internal/peer/picture"
	"github.com/volsfu/volsfu/internal/peer/render"
	"github.com/volsfu/volsfu/internal/peer/save"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// reception is the part of a session that a viewer uses. *client.Session implements it.
type reception interface {
	Events() <-chan client.Event
	Frames() <-chan client.Frame
	Packets() <-chan client.Packet
	Participants() []signal.Participant
	SetQuality(ctx context.Context, choices ...signal.Choice) error
	ServerTime(t time.Time) time.Time
	Stats() []client.TileStats
	ECN() client.ECNCounts
	Redundancy() client.RedundancyStats
	Encryption() client.EncryptionStats
	RequestKeyFrame(tile volumetric.TileRef) error
	Done() <-chan struct{}
	Err() error
}

// timed records the last timestamps of frames. *client.Session implements it.
type timed interface {
	FrameDecoded(f *client.Frame, began, done time.Time)
	FrameShown(track volumetric.TrackRef, number int64, began, done time.Time)
}

// viewerConfig configures a viewer.
type viewerConfig struct {
	wish        choice.Wish
	switchEvery time.Duration
	seed        uint64
	deadline    time.Duration
	sound       string
}

// viewer watches a room: it decodes and shows frames, sends choices and collects the counters. The fields are owned by
// the goroutine of run. All times are by the server's clock.
type viewer struct {
	config  viewerConfig
	console io.Writer
	log     *slog.Logger
	session reception

	// received is set once a frame has arrived.
	received bool

	pool   *decode.Pool
	book   *summary.Book
	stages map[string]*present.Stage
	// publications has the current publications of the other participants, volumetric all publications that ever
	// existed and are decoded here.
	publications map[volumetric.PublicationRef]volumetric.Publication
	volumetric   map[volumetric.PublicationRef]bool
	// pictures has the received pictures, pictureQuality the qualities that the server reports as sent.
	pictures       map[volumetric.PublicationRef]*picture.Reception
	pictureQuality map[volumetric.PublicationRef]volumetric.Quality

	board   board
	refused map[string]bool
	// sent has the tiles, in volumetric.ModeDescriptions the descriptions, that the server reports as sent.
	sent map[volumetric.TrackRef]bool

	requests *requests

	// timed is nil if frames are not traced. undrawn has the decoded frames that were not drawn yet. drawn is scratch
	// memory.
	timed   timed
	undrawn map[volumetric.PublicationRef][]undrawn
	drawn   []render.Drawn

	writer     *save.Writer
	screen     *render.Screen
	recorder   *opus.Recorder
	heard      volumetric.PublicationRef
	ended      time.Time
	stats      []client.TileStats
	ecn        client.ECNCounts
	paths      client.RedundancyStats
	encryption client.EncryptionStats
}

// longestDeadline is the largest deadline that a session uses by default.
const longestDeadline = 250 * time.Millisecond

func newViewer(config viewerConfig, console io.Writer, log *slog.Logger) *viewer {
	if config.deadline == 0 {
		config.deadline = longestDeadline
	}
	v := &viewer{
		config:       config,
		console:      console,
		log:          log,
		book:         summary.NewBook(),
		stages:       make(map[string]*present.Stage),
		publications: make(map[volumetric.PublicationRef]volumetric.Publication),
		volumetric:   make(map[volumetric.PublicationRef]bool),
		pictures:     make(map[volumetric.PublicationRef]*picture.Reception),

		pictureQuality: make(map[volumetric.PublicationRef]volumetric.Quality),
		refused:        make(map[string]bool),
		sent:           make(map[volumetric.TrackRef]bool),
	}
	v.requests = newRequests(v, config.seed)
	return v
}

func (v *viewer) now() time.Time { return v.session.ServerTime(time.Now()) }

// run watches until the context ends or the user types quit, which is not an error, or until the session ends.
func (v *viewer) run(ctx context.Context, session reception, lines <-chan string) error {
	v.session = session
	ctx, cancel := context.WithCancel(ctx)
	asking := make(chan struct{})
	go func() {
		defer close(asking)
		v.requests.send(ctx, session)
	}()
	v.compare()
	err := v.loop(ctx, lines)
	cancel()
	<-asking
	v.ended, v.stats, v.ecn, v.paths = v.now(), session.Stats(), session.ECN(), session.Redundancy()
	v.encryption = session.Encryption()
	return err
}

// loop handles one event at a time.
func (v *viewer) loop(ctx context.Context, lines <-chan string) error {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	var switching <-chan time.Time
	if v.config.switchEvery > 0 {
		ticker := time.NewTicker(v.config.switchEvery)
		defer ticker.Stop()
		switching = ticker.C
	}
	step := time.NewTimer(time.Hour)
	defer step.Stop()
	events, frames, packets := v.session.Events(), v.session.Frames(), v.session.Packets()
	for {
		select {
		case e, open := <-events:
			if !open {
				events = nil
				continue
			}
			v.event(e)
		case f, open := <-frames:
			if !open {
				frames = nil
				continue
			}
			f.Whole = nil // decoding uses Data only
			v.frame(&f)
			continue // a frame is shown after decoding
		case r := <-v.pool.Results():
			v.result(&r)
		case p, open := <-packets:
			if !open {
				packets = nil
				continue
			}
			v.refuseSound(&p)
			v.packet(&p)
			continue // audio is played in step with video
		case line, open := <-lines:
			if !open {
				lines = nil
				continue
			}
			if v.command(line) {
				return nil
			}
		case f := <-v.requests.failed:
			v.requests.withdraw(f)
		case <-switching:
			v.requests.switchAtRandom()
		case <-second.C:
			v.print()
		case <-step.C:
		case <-ctx.Done():
			return nil
		case <-v.session.Done():
			return v.session.Err()
		}
		v.step(step)
	}
}

// refuseSound logs, for each publication, the first audio packet that is not Opus. Unsupported video was logged at its
// publication.
func (v *viewer) refuseSound(p *client.Packet) {
	ref := p.Track.PublicationRef
	if name := ref.String(); !p.Codec.Is(volumetric.MIMEOpus) && v.publications[ref].Kind == volumetric.KindAudio &&
		!v.refused[name] {
		v.refused[name] = true
		v.log.Warn("audio is not played", "publication", name, "error",
			fmt.Errorf("%w: %s", codec.ErrUnknown, p.Codec.MIMEType))
	}
}

// step shows the frames that are due and sets the timer for the next frame.
func (v *viewer) step(timer *time.Timer) {
	if v.screen != nil {
		v.takeDrawn()
	}
	now := v.now()
	var next time.Time
	for participant, stage := range v.stages {
		for _, s := range stage.Step(now) {
			v.show(participant, &s)
		}
		if at, ok := stage.Next(now); ok && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if !next.IsZero() {
		timer.Reset(next.Sub(now))
	}
}

// show counts, renders and saves the frame that a publication shows from now on.
func (v *viewer) show(participant string, s *present.Showing) {
	ref := volumetric.PublicationRef{Participant: participant, Publication: s.Publication}
	for tile, frames := range s.Held {
		v.book.Held(volumetric.TileRef{PublicationRef: ref, Tile: tile}, frames)
	}
	if s.Heard {
		v.book.Skew(ref, s.Skew)
	}
	if v.screen != nil {
		p := v.publications[ref]
		v.screen.Show(ref.String(), render.Frame{Number: s.Number, Clouds: s.Clouds, Box: boxOf(&p), Capture: s.Capture,
			Decoded: s.Decoded})
	}
	if v.writer != nil {
		v.writer.Write(save.Frame{Participant: participant, Publication: s.Publication, Number: s.Number,
			Clouds: s.Clouds})
	}
}

// command executes a line of input. command reports whether the line was quit.
func (v *viewer) command(line string) (quit bool) {
	command, err := choice.Parse(line)
	if err != nil {
		v.say(err.Error())
		return false
	}
	switch command.Verb {
	case choice.VerbQuit:
		return true
	case choice.VerbHelp:
		v.say(choice.Help)
	case choice.VerbStats:
		s := v.book.Sum(v.volumetricStats(v.session.Stats()), v.now())
		s.ECN.Count(v.session.ECN())
		s.CountPaths(v.session.Redundancy())
		s.Encryption = v.session.Encryption()
		v.say(s.Text())
	case choice.VerbQuality:
		choices, err := choice.Resolve(command.Target, command.Wish, v.session.Participants())
		if err != nil {
			v.say(err.Error())
			return false
		}
		v.requests.ask(choices)
	}
	return false
}

func (v *viewer) say(text string) { _, _ = fmt.Fprintln(v.console, text) }

// close ends decoding, saving and recording. close is called after run has returned, or without run.
func (v *viewer) close() {
	// Frames that still wait were not decoded in time and count as superseded.
	for tile, frames := range v.pool.Close() {
		v.book.Skipped(tile.TileRef, frames)
	}
	for r := range v.pool.Results() {
		v.result(&r)
	}
	if v.screen != nil {
		v.screen.Close()
		v.takeDrawn()
	}
	if v.writer != nil {
		v.writer.Close()
		written, dropped := v.writer.Counts()
		v.log.Info("frames saved", "written", written, "dropped", dropped)
	}
	if v.recorder != nil {
		if err := v.recorder.Close(); err != nil {
			v.log.Warn("audio is not saved", "error", err)
		}
	}
}

// sum returns the summary. sum is called after run has returned.
func (v *viewer) sum() summary.Summary {
	sum := v.book.Sum(v.volumetricStats(v.stats), v.ended)
	sum.ECN.Count(v.ecn)
	sum.CountPaths(v.paths)
	sum.Encryption = v.encryption
	sum.Pictures = v.pictureFigures(v.ended)
	if v.screen != nil {
		sum.Render = rendered(v.screen.Stats())
	}
	return sum
}

// volumetricStats returns the counters without audio and unsupported video, which are not decoded here.
func (v *viewer) volumetricStats(stats []client.TileStats) []client.TileStats {
	var list []client.TileStats
	for _, s := range stats {
		if v.volumetric[s.Track.PublicationRef] {
			list = append(list, s)
		}
	}
	return list
}
