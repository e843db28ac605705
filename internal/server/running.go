package server

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/process"
	"github.com/volsfu/volsfu/internal/reload"
)

// stopTimeout is the time limit for active requests of the operators' listener at the end.
const stopTimeout = 5 * time.Second

// Run starts a server and runs it until SIGINT, SIGTERM or an operator ends it. Then Run drains the rooms and returns.
// A second signal ends the server at once. On SIGHUP the server reloads its files (Server.Reload). Run is for
// programs that are nothing but a server: it sets the priority and the garbage collection of the process.
func Run(o Options) error {
	// SIGHUP never ends the server. Signals before the start and while the server stops are dropped.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
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
	defer reloadOn(hangups, s)()
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

// reloadOn reloads a server on each signal, until the returned function is called.
func reloadOn(hangups <-chan os.Signal, s *Server) (end func()) {
	done := make(chan struct{})
	var reloading sync.WaitGroup
	reloading.Go(func() {
		for {
			select {
			case <-hangups:
				s.Reload()
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		reloading.Wait()
	}
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

// NewLog returns a logger to the configured file, or to standard error if there is none. The file is nil then.
func NewLog(c config.Log) (*zap.Logger, *reload.LogFile, error) {
	level, err := zapcore.ParseLevel(c.Level)
	if err != nil {
		return nil, nil, err
	}
	encoder, options := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), []zap.Option{zap.AddCaller()}
	if c.Format == "console" {
		encoder, options = zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()), nil
	}
	var file *reload.LogFile
	to := zapcore.Lock(os.Stderr)
	if c.File != "" {
		if file, err = reload.OpenLog(c.File); err != nil {
			return nil, nil, err
		}
		to = file
	}
	options = append(options, zap.ErrorOutput(zapcore.Lock(os.Stderr)))
	return zap.New(zapcore.NewCore(encoder, to, level), options...), file, nil
}
