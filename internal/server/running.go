package server

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/process"
)

// stopTimeout is the time limit for active requests of the operators' listener at the end.
const stopTimeout = 5 * time.Second

// Run starts a server and runs it until SIGINT, SIGTERM or an operator ends it. Then Run drains the rooms and returns.
// A second signal ends the server at once. Run is for programs that are nothing but a server: it sets the priority and
// the garbage collection of the process.
func Run(o Options) error {
	process.LimitGarbage()
	if err := process.RaisePriority(o.Config.Server.Nice); err != nil {
		// systemd and container runtimes raise the priority before the start, or leave it unchanged.
		o.Log.Info("the priority stays as it is", zap.Error(err))
	}
	// The handler is installed before the server starts, because a supervisor may send a signal as soon as the server
	// is ready.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	s, err := Start(o)
	if err != nil {
		return err
	}
	var failure error
	select {
	case received := <-signals:
		o.Log.Info("stopping", zap.String("signal", received.String()))
		s.drain(signals)
	case <-s.DrainRequested():
		o.Log.Info("stopping", zap.String("signal", "request of an operator"))
		s.drain(signals)
	case failure = <-s.Failed():
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		o.Log.Warn("the server did not stop cleanly", zap.Error(err))
	}
	o.Log.Info("stopped")
	return failure
}

// drain waits until all participants have left, the drain time is over, or a signal arrives.
func (s *Server) drain(signals <-chan os.Signal) {
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

// NewLog returns a logger to standard error.
func NewLog(c config.Log) (*zap.Logger, error) {
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
