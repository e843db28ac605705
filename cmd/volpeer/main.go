// Command volpeer is the reference client: it publishes point clouds and audio to a room, and receives the publications
// of others.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/calibrate"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/export"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/playback"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/publish"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/record"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/watch"
	"github.com/volsfu/volsfu/internal/build"
)

// version is set by the linker.
var version = "dev"

func main() {
	// The first signal ends the program in order, a second signal at once.
	ctx, restore := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, restore)
	root := newRoot()
	if err := startedAsBridge(os.Args[0]); err != nil {
		fmt.Fprintln(os.Stderr, "volpeer:", err)
		os.Exit(statusFailed)
	}
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "volpeer:", err)
		os.Exit(statusOf(err))
	}
}

// Exit statuses other than 0. Measurement scripts use the codes to distinguish a session without any decodable frame,
// which may be an expected result, from a failure.
const (
	statusFailed  = 1
	statusNothing = 3
)

// statusOf returns the exit status for the error of a command.
func statusOf(err error) int {
	if errors.Is(err, watch.ErrNothing) {
		return statusNothing
	}
	return statusFailed
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "volpeer",
		Version:       build.Line("volpeer", version),
		Short:         "Publish and watch volumetric video through volsfu",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(publish.Command(), watch.Command(), record.Command(), playback.Command(), export.Command(),
		calibrate.Command(), newVersion())
	root.AddCommand(movedCommands()...)
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), build.Line("volpeer", version))
		},
	}
}

// moved lists the commands that have moved to another program, by the old names.
var moved = []struct{ name, to string }{
	{"bridge", "volbridge"}, {"direct", "vollab direct"}, {"compare", "vollab compare"}, {"codec", "vollab codec"},
}

// movedCommands returns hidden commands that fail with the name of the new command.
func movedCommands() []*cobra.Command {
	var commands []*cobra.Command
	for _, m := range moved {
		commands = append(commands, &cobra.Command{
			Use: m.name, Short: "Moved to " + m.to, Hidden: true, DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error {
				return fmt.Errorf("the command volpeer %s is now %s", m.name, m.to)
			},
		})
	}
	return commands
}

// peerProgram is the name by which VR2Gather starts its own peer.
const peerProgram = "WebRTCSFU-peer"

// startedAsBridge returns an error if the program was started by the name of VR2Gather's own peer.
func startedAsBridge(program string) error {
	name := strings.TrimSuffix(strings.ToLower(program[strings.LastIndexAny(program, `/\`)+1:]), ".exe")
	if name != strings.ToLower(peerProgram) {
		return nil
	}
	return fmt.Errorf("%s is this program's name, but it is volpeer: the program that stands in place of VR2Gather's "+
		"own peer is now volbridge",
		peerProgram)
}
