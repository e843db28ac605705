package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/choice"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/decode"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/timing"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/render"
	"github.com/volsfu/volsfu/internal/peer/save"
	"github.com/volsfu/volsfu/internal/peer/sight"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// watching is what the flags of volpeer watch say.
type watching struct {
	room        peer.Room
	seconds     float64
	quality     string
	switchEvery time.Duration
	seed        uint64
	deadline    time.Duration
	most        peer.Bitrate
	start       peer.Bitrate
	viewpoint   string
	person      string
	save        string
	render      render.Flags
	audio       string
	commands    bool
	json        bool
	times       timing.Measurement
}

func newWatch() *cobra.Command {
	w := &watching{}
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Receive and decode what others publish",
		Long:  "Receive and decode what others publish, with a line per publication and second. At a terminal, and with --commands, it reads " + choice.Help,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return w.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr(), newLog(cmd))
		},
	}
	w.room.Flags(cmd.Flags())
	f := cmd.Flags()
	f.Float64Var(&w.seconds, "seconds", 0, "end after so many seconds; 0 goes on until interrupted")
	f.StringVar(&w.quality, "quality", "auto", "quality of everything: auto, off, a name, a number from 0, or a list of these with commas for descriptions")
	f.DurationVar(&w.switchEvery, "switch-every", 0, "ask for another quality of every tile, at random, so often; 0 does not")
	f.Uint64Var(&w.seed, "seed", 0, "chooses the random qualities")
	f.DurationVar(&w.deadline, "deadline", 0, "how long after its first packet a frame is repaired; 0 is 150 ms, or 250 ms where the round trip exceeds 50 ms")
	f.Var(&w.most, "max-bitrate", "what is to be sent here at most, such as 20Mbit; without, as much as the network carries")
	f.Var(&w.start, "start-bitrate", "what the network is believed to carry to here until the server has measured it, such as 10Mbit; without, the server's own start rate")
	f.StringVar(&w.viewpoint, "viewpoint", "", "CSV file with recorded head movements to look around by, 30 per second, in a loop")
	f.StringVar(&w.person, "viewpoint-of", "", "whose movements of that file; without, those of the first person there")
	f.StringVar(&w.save, "save", "", "folder for shown frames, as PLY")
	w.render.Add(f)
	f.StringVar(&w.audio, "audio", "", "Ogg file for the sound of the first participant who is heard")
	f.BoolVar(&w.commands, "commands", false, "read commands from standard input even where it is no terminal")
	f.BoolVar(&w.json, "json", false, "print one JSON object at the end")
	w.times.Flags(f)
	return cmd
}

// errNothing is returned if nothing else went wrong. It is never joined with another error.
var errNothing = errors.New("no frame was decoded")

// run watches until the context ends, somebody types quit, or the session ends.
func (w *watching) run(ctx context.Context, in io.Reader, out, console io.Writer, log *slog.Logger) error {
	if err := w.room.Check(); err != nil {
		return err
	}
	wish, err := choice.ParseWish(w.quality)
	if err != nil {
		return fmt.Errorf("--quality: %w", err)
	}
	if w.deadline < 0 || w.switchEvery < 0 || w.seconds < 0 {
		return fmt.Errorf("--deadline, --switch-every, --seconds: %w", peer.ErrDuration)
	}
	var trace *sight.Trace
	if w.viewpoint != "" {
		if trace, err = sight.Open(w.viewpoint, w.person); err != nil {
			return fmt.Errorf("--viewpoint: %w", err)
		}
	}
	viewer := newViewer(viewerConfig{wish: wish, switchEvery: w.switchEvery, seed: w.seed, deadline: w.deadline, sound: w.audio}, console, log)
	if w.save != "" {
		if viewer.writer, err = save.NewWriter(w.save, log); err != nil {
			return fmt.Errorf("--save: %w", err)
		}
	}
	if w.audio != "" {
		// Sound may begin late or never: find out now whether the file can be written.
		file, err := os.Create(w.audio)
		if err != nil {
			return fmt.Errorf("--audio: %w", err)
		}
		_ = file.Close()
	}
	if viewer.screen, err = w.render.Open(viewer.now, log); err != nil {
		return err
	}
	viewer.pool = decode.NewPool(runtime.GOMAXPROCS(0), w.save != "" || viewer.screen != nil)
	if err := w.times.Open(log); err != nil {
		viewer.close()
		return err
	}
	session, err := w.room.Join(ctx, client.Config{
		Receive: true, Deadline: w.deadline, MaxBitrate: volumetric.Bitrate(w.most), StartBitrate: volumetric.Bitrate(w.start), FrameTimes: w.times.Wanted(), Log: log,
	})
	if err != nil {
		viewer.close()
		return errors.Join(err, w.times.Close())
	}
	if w.times.Wanted() {
		viewer.timed = session
		w.times.Follow(session)
	}
	log.Info("joined", "room", session.Room(), "identity", session.Identity())
	ctx, cancel := peer.Limit(ctx, w.seconds)
	defer cancel()
	var lines <-chan string
	if w.commands || terminal(in) {
		lines = read(in)
	}
	var looking sync.WaitGroup
	if trace != nil {
		looking.Go(func() { trace.Look(ctx, spectator{session, w.render.Follower(viewer.screen)}) })
	}
	ended := viewer.run(ctx, session, lines)
	cancel()
	looking.Wait()
	viewer.close()
	sum := viewer.sum()
	_ = session.Close()
	sum.Layers = w.times.Sum()
	if w.json {
		err = json.NewEncoder(out).Encode(sum)
	} else {
		_, err = fmt.Fprint(out, sum.Text())
	}
	err = errors.Join(ended, err, w.times.Close())
	if err == nil && sum.Decoded == 0 {
		err = errNothing
	}
	return err
}

// terminal tells whether somebody may type. Other character devices, as the null device, end at once and do no harm.
func terminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// read reads lines until the input ends. Nothing can end it earlier: it ends with the program.
func read(in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(in)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
	}()
	return lines
}
