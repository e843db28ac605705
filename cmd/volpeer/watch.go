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
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/choice"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/decode"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/save"
	"github.com/volsfu/volsfu/pkg/client"
)

// watching is what the flags of volpeer watch say.
type watching struct {
	room        room
	seconds     float64
	quality     string
	switchEvery time.Duration
	seed        uint64
	deadline    time.Duration
	save        string
	audio       string
	commands    bool
	json        bool
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
	w.room.flags(cmd)
	f := cmd.Flags()
	f.Float64Var(&w.seconds, "seconds", 0, "end after so many seconds; 0 goes on until interrupted")
	f.StringVar(&w.quality, "quality", "auto", "quality of everything: auto, off, a name, a number from 0, or a list of these with commas for descriptions")
	f.DurationVar(&w.switchEvery, "switch-every", 0, "ask for another quality of every tile, at random, so often; 0 does not")
	f.Uint64Var(&w.seed, "seed", 0, "chooses the random qualities")
	f.DurationVar(&w.deadline, "deadline", 0, "how long after its first packet a frame is repaired; 0 is 150 ms, or 250 ms where the round trip exceeds 50 ms")
	f.StringVar(&w.save, "save", "", "folder for shown frames, as PLY")
	f.StringVar(&w.audio, "audio", "", "Ogg file for the sound of the first participant who is heard")
	f.BoolVar(&w.commands, "commands", false, "read commands from standard input even where it is no terminal")
	f.BoolVar(&w.json, "json", false, "print one JSON object at the end")
	return cmd
}

// Errors of watching.
var (
	errNothing  = errors.New("no frame was decoded")
	errDuration = errors.New("expected 0 or more")
)

// run watches until the context ends, somebody types quit, or the session ends.
func (w *watching) run(ctx context.Context, in io.Reader, out, console io.Writer, log *slog.Logger) error {
	if err := w.room.check(); err != nil {
		return err
	}
	wish, err := choice.ParseWish(w.quality)
	if err != nil {
		return fmt.Errorf("--quality: %w", err)
	}
	if w.deadline < 0 || w.switchEvery < 0 || w.seconds < 0 {
		return fmt.Errorf("--deadline, --switch-every, --seconds: %w", errDuration)
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
	viewer.pool = decode.NewPool(runtime.GOMAXPROCS(0), w.save != "")
	session, err := w.room.join(ctx, client.Config{Receive: true, Deadline: w.deadline, Log: log})
	if err != nil {
		viewer.close()
		return err
	}
	log.Info("joined", "room", session.Room(), "identity", session.Identity())
	ctx, cancel := limited(ctx, w.seconds)
	defer cancel()
	var lines <-chan string
	if w.commands || terminal(in) {
		lines = read(in)
	}
	ended := viewer.run(ctx, session, lines)
	viewer.close()
	sum := viewer.sum()
	_ = session.Close()
	if w.json {
		err = json.NewEncoder(out).Encode(sum)
	} else {
		_, err = fmt.Fprint(out, report(&sum))
	}
	if sum.Decoded == 0 {
		err = errors.Join(err, errNothing)
	}
	return errors.Join(ended, err)
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
