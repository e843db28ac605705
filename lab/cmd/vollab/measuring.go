package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/lab/codecbench"
	"github.com/volsfu/volsfu/lab/direct"
	"github.com/volsfu/volsfu/lab/imagediff"
	"github.com/volsfu/volsfu/lab/messages"
)

// measuringCommands returns the commands that other packages implement.
func measuringCommands() []*cobra.Command {
	commands := []*cobra.Command{direct.Command(), imagediff.Command(), codecbench.Command(),
		messages.Command()}
	for _, cmd := range commands {
		cmd.PersistentPreRun = func(cmd *cobra.Command, _ []string) { cmd.SetContext(untilSignal(cmd.Context())) }
	}
	return commands
}

// untilSignal returns a context that ends at the first signal, so that a command ends cleanly. A second signal ends the
// program immediately.
func untilSignal(ctx context.Context) context.Context {
	ctx, restore := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, restore)
	return ctx
}
