package recorder

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/recording"
)

// stepInterval is the interval at which the logs of tracks are read. A log holds a second of packets, or less if the
// caches of the server are full.
const stepInterval = 25 * time.Millisecond

// PanicPlace is the name to Config.Guard of the goroutine that reads logs.
const PanicPlace = "recorder"

// Recorder has the recordings of a server. The methods are safe for any goroutine.
type Recorder struct {
	config  Config
	version string
	log     *zap.Logger
	ledger  *ledger
	// buffers has the unused buffers of all recordings.
	buffers *buffers
	// queued is the memory of the data that wait for the disk, in bytes.
	queued atomic.Int64
	counts counts
	end    chan struct{}
	ended  chan struct{}

	mu         sync.Mutex
	recordings []*Recording
	// ending are the recordings whose rest is being written.
	ending sync.WaitGroup
}

type counts struct{ frames, bytes, incomplete, overrun, discarded, failures atomic.Uint64 }

// Stats are the counters of a Recorder.
type Stats struct {
	// Rooms is the number of rooms that are recorded. DiskBytes is the size of all segments, QueuedBytes the memory of
	// the data that wait for the disk.
	Rooms                  int
	DiskBytes, QueuedBytes int64
	// Frames counts recorded frames and packets of audio, Bytes the bytes written.
	Frames, Bytes uint64
	// Incomplete counts frames that did not arrive whole, Overrun packets that were not read in time, and Discarded
	// frames for which the disk was too slow or full. Failures counts failed attempts to write, and Deleted segments
	// that were deleted because of a limit.
	Incomplete, Overrun, Discarded, Failures, Deleted uint64
}

// New opens the folder of recordings and starts the goroutine that reads logs. The caller ends the Recorder with Close.
// version is the version of the server.
func New(config Config, version string, log *zap.Logger) (*Recorder, error) {
	r, err := open(config, version, log)
	if err != nil {
		return nil, err
	}
	go r.run()
	return r, nil
}

// open returns a Recorder whose goroutine does not run.
func open(config Config, version string, log *zap.Logger) (*Recorder, error) {
	ledger, err := openLedger(&config)
	if err != nil {
		return nil, err
	}
	return &Recorder{
		config: config, version: version, log: log, ledger: ledger, buffers: new(buffers),
		end:   make(chan struct{}),
		ended: make(chan struct{}),
	}, nil
}

// Automatic returns the qualities in which every room is recorded, empty if rooms are recorded on request.
func (r *Recorder) Automatic() recording.Qualities {
	if r.config.Automatic == off {
		return ""
	}
	return recording.Qualities(r.config.Automatic)
}

// Start begins a recording of a room.
func (r *Recorder) Start(room string, now time.Time) *Recording {
	g := r.begin(room, now)
	r.ending.Go(g.write)
	return g
}

// begin is Start without the goroutine that writes.
func (r *Recorder) begin(room string, now time.Time) *Recording {
	folder := recording.RoomFolder(room)
	log := r.log.With(zap.String("room", room))
	path := filepath.Join(r.config.Directory, folder, recording.Folder(now)+"-"+rand.Text()[:4])
	g := &Recording{
		recorder: r,
		log:      log,
		disk:     &disk{folder: path, room: folder, ledger: r.ledger, interval: r.config.SyncInterval},
		chunks:   make(chan *chunk, maxChunks),
		buffer:   &chunk{free: r.buffers},
		written:  make(chan struct{}),
		head:     recording.Head{Room: room, Recording: rand.Text(), Server: r.version},
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordings = append(r.recordings, g)
	log.Info("the room is recorded", zap.String("folder", path))
	return g
}

// remove removes a recording that ends.
func (r *Recorder) remove(g *Recording) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := slices.Index(r.recordings, g); at >= 0 {
		r.recordings = slices.Delete(r.recordings, at, at+1)
	}
}

// present returns the recordings that have not ended.
func (r *Recorder) present() []*Recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.recordings)
}

// run is the goroutine that reads logs.
func (r *Recorder) run() {
	defer close(r.ended)
	ticker := time.NewTicker(stepInterval)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			for _, g := range r.present() {
				if !r.config.Guard.Try(PanicPlace, func() { g.step(now) }) {
					g.abandon()
				}
			}
		case <-r.end:
			return
		}
	}
}

// Stats returns the counters.
func (r *Recorder) Stats() Stats {
	bytes, deleted := r.ledger.usage()
	c := &r.counts
	return Stats{
		Rooms: len(r.present()), DiskBytes: bytes, QueuedBytes: r.queued.Load(), Frames: c.frames.Load(),
		Bytes: c.bytes.Load(), Incomplete: c.incomplete.Load(), Overrun: c.overrun.Load(),
		Discarded: c.discarded.Load(), Failures: c.failures.Load(), Deleted: deleted,
	}
}

// Close ends all recordings and waits until they are written, or the context ends.
func (r *Recorder) Close(ctx context.Context) {
	close(r.end)
	<-r.ended
	for _, g := range r.present() {
		g.Stop(time.Now(), "the server stops")
	}
	written := make(chan struct{})
	go func() {
		r.ending.Wait()
		close(written)
	}()
	select {
	case <-written:
	case <-ctx.Done():
	}
}
