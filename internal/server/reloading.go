package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/reload"
)

// reloadInterval is the time between two examinations of the files. A changed file is read when it has been unchanged
// for one interval, so at most 2 s after the change.
const reloadInterval = time.Second

// reloader reloads files of a running server, on request and when they change. If a file is invalid, the server keeps
// the contents of the last valid one.
type reloader struct {
	log *zap.Logger
	// logFile is nil if the log is not a file.
	logFile *reload.LogFile

	// mu guards the files and their watches.
	mu    sync.Mutex
	files []*reloadable

	end   context.CancelFunc
	ended sync.WaitGroup
}

// reloadable are files that are read together.
type reloadable struct {
	// name names the files in the log.
	name  string
	paths []string
	load  func() error
	watch *reload.Watch
}

// add calls load, which reads the files, and again each time they are reloaded. An error of the first call is returned.
func (r *reloader) add(name string, paths []string, load func() error) error {
	watch := reload.NewWatch(reload.StatesOf(paths))
	if err := load(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files = append(r.files, &reloadable{name, paths, load, watch})
	return nil
}

// start starts the goroutine that examines the files, which ends with close.
func (r *reloader) start() {
	ctx, end := context.WithCancel(context.Background())
	r.end = end
	r.ended.Go(func() {
		ticker := time.NewTicker(reloadInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				r.changed()
			case <-ctx.Done():
				return
			}
		}
	})
}

func (r *reloader) close() {
	if r.end != nil {
		r.end()
		r.ended.Wait()
	}
}

// changed reloads the files that have changed.
func (r *reloader) changed() {
	if r.logFile != nil && r.logFile.Moved() {
		r.reopenLog()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.files {
		if f.watch.Step(reload.StatesOf(f.paths)) {
			r.read(f)
		}
	}
}

// all reloads all files, changed or not.
func (r *reloader) all() {
	if r.logFile != nil {
		r.reopenLog()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.files {
		f.watch.Read(reload.StatesOf(f.paths))
		r.read(f)
	}
}

// read loads files. The caller holds the mutex.
func (r *reloader) read(f *reloadable) {
	if err := f.load(); err != nil {
		r.log.Error("the "+f.name+" could not be reloaded; the server continues with the last valid one",
			zap.Strings("files", f.paths), zap.Error(err))
		return
	}
	r.log.Info("the "+f.name+" has been reloaded", zap.Strings("files", f.paths))
}

func (r *reloader) reopenLog() {
	if err := r.logFile.Reopen(); err != nil {
		r.log.Error("the log file could not be opened again; the log continues in the open file", zap.Error(err))
	}
}

// keyring has the keys of tokens. It is safe for concurrent use.
type keyring struct {
	config  auth.Config
	current atomic.Pointer[auth.Keyring]
}

// load reads the key file. The keys of the configuration remain.
func (k *keyring) load() error {
	keys, err := auth.NewKeyring(k.config)
	if err != nil {
		return err
	}
	k.current.Store(keys)
	return nil
}

// verify returns the claims of a token that is valid now.
func (k *keyring) verify(token string) (auth.Claims, error) {
	return k.current.Load().Verify(token, time.Now())
}

// keysOf returns the keys of a configuration. Those of a file are reloaded.
func (r *reloader) keysOf(c auth.Config) (*keyring, error) {
	keys := &keyring{config: c}
	if c.KeyFile == "" {
		return keys, keys.load()
	}
	return keys, r.add("file of token keys", []string{c.KeyFile}, keys.load)
}
