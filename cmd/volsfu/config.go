package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/internal/config"
)

func newConfig() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check or print the configuration"}
	cmd.AddCommand(
		configCommand("check", "Check file, environment and flags, and print the errors",
			func(cmd *cobra.Command, loader *config.Loader) error {
				if err := loader.Validate(); err != nil {
					return err
				}
				for _, name := range loader.UnknownVariables(os.Environ()) {
					fmt.Fprintln(cmd.ErrOrStderr(), "volsfu: unknown environment variable:", name)
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
