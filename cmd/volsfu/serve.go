package main

import (
	"os"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/server"
)

func newServe() *cobra.Command {
	settings := config.DefaultConfig()
	loader := config.NewLoader(&settings)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long:  "Run the server. Every flag is also a key of the configuration file (--config) and a variable VOLSFU_*.",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := loader.Load(os.Environ()); err != nil {
				return err
			}
			if err := loader.Validate(); err != nil {
				return err
			}
			log, logFile, err := server.NewLog(settings.Log)
			if err != nil {
				return err
			}
			defer func() { _ = log.Sync() }()
			for _, name := range loader.UnknownVariables(os.Environ()) {
				log.Warn("unknown environment variable", zap.String("name", name))
			}
			return server.Run(server.Options{Config: settings, Version: version, Log: log, LogFile: logFile})
		},
	}
	loader.AddFlags(cmd.Flags())
	return cmd
}
