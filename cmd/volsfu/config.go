package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/internal/config"
)

// errUnknownVariables reports variables of the environment that belong to no key. A typing error in a name would
// otherwise pass the check. The server only warns, because container platforms set variables of their own.
var errUnknownVariables = errors.New("unknown environment variables")

func newConfig() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check or print the configuration"}
	cmd.AddCommand(
		configCommand("check", "Check file, environment and flags, and print the errors",
			func(cmd *cobra.Command, loader *config.Loader) error {
				if err := loader.Validate(); err != nil {
					return err
				}
				if unknown := loader.UnknownVariables(os.Environ()); len(unknown) > 0 {
					return fmt.Errorf("%w: %s", errUnknownVariables, strings.Join(unknown, ", "))
				}
				fmt.Fprintln(cmd.OutOrStdout(), "the configuration is valid")
				return nil
			}),
		configCommand("print", "Print the configuration that is in force as a YAML file",
			func(cmd *cobra.Command, loader *config.Loader) error {
				return loader.Print(cmd.OutOrStdout())
			}),
	)
	return cmd
}

// configCommand returns a command that loads the configuration as serve does and then calls run.
func configCommand(use, short string, run func(*cobra.Command, *config.Loader) error) *cobra.Command {
	settings := config.DefaultConfig()
	loader := config.NewLoader(&settings)
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := loader.Load(os.Environ()); err != nil {
				return err
			}
			return run(cmd, loader)
		},
	}
	loader.AddFlags(cmd.Flags())
	return cmd
}
