//go:build !linux

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// errSystem is the error on other systems: BPF programs run in the kernel of Linux.
var errSystem = errors.New("volnet needs Linux")

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:                "volnet",
		Short:              "Copy packets onto several paths (on Linux)",
		SilenceUsage:       true,
		SilenceErrors:      true,
		DisableFlagParsing: true,
		RunE:               func(*cobra.Command, []string) error { return errSystem },
	}
	root.AddCommand(newVersion())
	return root
}
