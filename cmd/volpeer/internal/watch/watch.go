// Package watch implements volpeer watch: it joins a room, decodes, shows, renders and saves the publications of
// others, and prints a summary.
//
// A viewer is owned by the goroutine of its method run. A second goroutine sends quality requests, and a third one
// sends recorded viewpoints.
package watch

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
	"github.com/volsfu/volsfu/internal/peer/viewtrace"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Options has the flags of volpeer watch.
type Options struct {
	Room    peer.Room
	Seconds float64
	Quality string
	// SwitchEvery is the interval of random quality requests, 0 for none. Seed seeds the random numbers of the
	// requests.
	SwitchEvery time.Duration
	Seed        uint64
	Deadline    time.Duration
	Max, Start  peer.Bitrate
	// Viewpoint is a file of recorded head movements. Person selects the person in the file.
	Viewpoint, Person string
	Save              string
	Render            render.Flags
	Audio             string
	Commands, JSON    bool
	Times             timing.Measurement
}

// Command returns the command volpeer watch.
func Command() *cobra.Command {
	w := &Options{}
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Receive and decode what others publish",
		Long: "Receive and decode what others publish, with a line per publication and second. At a terminal, and " +
			"with --commands, it reads " + choice.Help,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return w.Run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr(),
				peer.NewLog(cmd.ErrOrStderr()))
		},
	}
	w.Room.Flags(cmd.Flags())
	w.Room.InterfaceFlags(cmd.Flags())
	w.Room.KeyFlags(cmd.Flags())
	f := cmd.Flags()
	f.Float64Var(&w.Seconds, "seconds", 0, "time to watch in seconds; 0 means until interrupted")
	f.StringVar(&w.Quality, "quality", "auto",
		"quality of all tiles: auto, off, a name, a number from 0, or a comma-separated list for descriptions")
	f.DurationVar(&w.SwitchEvery, "switch-every", 0,
		"interval of requests for a random other quality of every tile; 0 disables the requests")
	f.Uint64Var(&w.Seed, "seed", 0, "seed of the random qualities")
	f.DurationVar(&w.Deadline, "deadline", 0,
		"time for which a frame is repaired after its first packet; 0 means 150 ms, or 250 ms if the "+
			"round-trip time exceeds 50 ms")
	f.Var(&w.Max, "max-bitrate", "largest bitrate that the server may send, such as 20Mbit; the default is the "+
		"estimated capacity")
	f.Var(&w.Start, "start-bitrate", "bandwidth estimate before the server has measured the path, such as 10Mbit; "+
		"the default is the server's start rate")
	f.StringVar(&w.Viewpoint, "viewpoint", "",
		"CSV file with recorded viewpoints, 30 per second, that are replayed in a loop")
	f.StringVar(&w.Person, "viewpoint-of", "", "participant in that file; the default is the first one")
	f.StringVar(&w.Save, "save", "", "folder in which shown frames are saved as PLY files")
	w.Render.Add(f)
	f.StringVar(&w.Audio, "audio", "", "Ogg file in which the audio of the first participant with audio is saved")
	f.BoolVar(&w.Commands, "commands", false, "read commands from standard input even if it is not a terminal")
	f.BoolVar(&w.JSON, "json", false, "print one JSON object at the end")
	w.Times.Flags(f)
	return cmd
}

// ErrNothing is returned if no frame was decoded, no frame of a picture was received, and there was no other error.
// ErrNothing is never joined with another error.
var ErrNothing = errors.New("no frame was decoded")

// Run watches until the context ends, the user types quit, or the session ends.
func (w *Options) Run(ctx context.Context, in io.Reader, out, console io.Writer, log *slog.Logger) error {
	if err := w.Room.Check(); err != nil {
		return err
	}
	wish, err := choice.ParseWish(w.Quality)
	if err != nil {
		return fmt.Errorf("--quality: %w", err)
	}
	if w.Deadline < 0 || w.SwitchEvery < 0 || w.Seconds < 0 {
		return fmt.Errorf("--deadline, --switch-every, --seconds: %w", peer.ErrDuration)
	}
	var trace *viewtrace.Trace
	if w.Viewpoint != "" {
		if trace, err = viewtrace.Open(w.Viewpoint, w.Person); err != nil {
			return fmt.Errorf("--viewpoint: %w", err)
		}
	}
	viewer := newViewer(viewerConfig{wish: wish, switchEvery: w.SwitchEvery, seed: w.Seed, deadline: w.Deadline,
		sound: w.Audio}, console, log)
	if w.Save != "" {
		if viewer.writer, err = save.NewWriter(w.Save, log); err != nil {
			return fmt.Errorf("--save: %w", err)
		}
	}
	if w.Audio != "" {
		// Audio may begin late or never. The file is created now, so that an error is reported at once.
		file, err := os.Create(w.Audio)
		if err != nil {
			return fmt.Errorf("--audio: %w", err)
		}
		_ = file.Close()
	}
	if viewer.screen, err = w.Render.Open(viewer.now, log); err != nil {
		return err
	}
	viewer.pool = decode.NewPool(runtime.GOMAXPROCS(0), w.Save != "" || viewer.screen != nil)
	if err := w.Times.Open(log); err != nil {
		viewer.close()
		return err
	}
	session, err := w.Room.Join(ctx, client.Config{
		Receive: true, Deadline: w.Deadline, MaxBitrate: volumetric.Bitrate(w.Max),
		StartBitrate: volumetric.Bitrate(w.Start), FrameTimes: w.Times.Wanted(), Log: log,
	})
	if err != nil {
		viewer.close()
		return errors.Join(err, w.Times.Close())
	}
	if w.Times.Wanted() {
		viewer.timed = session
		w.Times.Follow(session)
	}
	log.Info("joined", "room", session.Room(), "identity", session.Identity())
	ctx, cancel := peer.Limit(ctx, w.Seconds)
	defer cancel()
	var lines <-chan string
	if w.Commands || terminal(in) {
		lines = read(in)
	}
	var looking sync.WaitGroup
	if trace != nil {
		looking.Go(func() { trace.Replay(ctx, spectator{session, w.Render.Follower(viewer.screen)}) })
	}
	ended := viewer.run(ctx, session, lines)
	cancel()
	looking.Wait()
	viewer.close()
	sum := viewer.sum()
	_ = session.Close()
	sum.Layers = w.Times.Sum()
	if w.JSON {
		err = json.NewEncoder(out).Encode(sum)
	} else {
		_, err = fmt.Fprint(out, sum.Text())
	}
	err = errors.Join(ended, err, w.Times.Close())
	if err == nil && sum.Decoded == 0 && sum.PictureFrames() == 0 {
		err = ErrNothing
	}
	return err
}

// terminal reports whether the input is a character device. Character devices other than terminals, such as the null
// device, end at once and do no harm.
func terminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// read reads lines until the input ends. The goroutine cannot be stopped earlier; read ends with the program.
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
