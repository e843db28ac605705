package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/process"
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
			log, err := newLog(settings.Log)
			if err != nil {
				return err
			}
			defer func() { _ = log.Sync() }()
			for _, name := range loader.UnknownVariables(os.Environ()) {
				log.Warn("unknown environment variable", zap.String("name", name))
			}
			return run(log, settings.Server.Nice, func() (*server.Server, error) {
				return server.Start(server.Options{Config: settings, Version: version, Log: log})
			})
		},
	}
	loader.AddFlags(cmd.Flags())
	return cmd
}

// stopTimeout is the time limit for active requests of the operators' listener at the end.
const stopTimeout = 5 * time.Second

// run starts a server and runs it until SIGINT, SIGTERM or an operator ends it. Then it drains the rooms and ends. A
// second signal ends it at once.
func run(log *zap.Logger, nice int, start func() (*server.Server, error)) error {
	process.LimitGarbage()
	if err := process.RaisePriority(nice); err != nil {
		// systemd and container runtimes raise the priority before the start, or leave it unchanged.
		log.Info("the priority stays as it is", zap.Error(err))
	}
	// The handler is installed before the server starts, because a supervisor may send a signal as soon as the server
	// is ready.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	s, err := start()
	if err != nil {
		return err
	}
	var failure error
	select {
	case received := <-signals:
		log.Info("stopping", zap.String("signal", received.String()))
		drain(s, signals)
	case <-s.DrainRequested():
		log.Info("stopping", zap.String("signal", "request of an operator"))
		drain(s, signals)
	case failure = <-s.Failed():
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		log.Warn("the server did not stop cleanly", zap.Error(err))
	}
	log.Info("stopped")
	return failure
}

// drain waits until all participants have left, the drain time is over, or a signal arrives.
func drain(s *server.Server, signals <-chan os.Signal) {
	draining, end := context.WithCancel(context.Background())
	defer end()
	go func() {
		select {
		case <-signals:
			end()
		case <-draining.Done():
		}
	}()
	s.Drain(draining)
}

// newLog returns a logger to standard error.
func newLog(c config.Log) (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(c.Level)
	if err != nil {
		return nil, err
	}
	z := zap.NewProductionConfig()
	z.Level = zap.NewAtomicLevelAt(level)
	z.Sampling = nil
	z.DisableStacktrace = true
	if c.Format == "console" {
		z.Encoding = "console"
		z.EncoderConfig = zap.NewDevelopmentEncoderConfig()
		z.DisableCaller = true
	}
	return z.Build()
}
