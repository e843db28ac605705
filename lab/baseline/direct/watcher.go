package direct

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/volsfu/volsfu/lab/baseline/tcp"
	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Watcher is the watching end. One goroutine per tile opens and reads the tile's connections.
type Watcher struct {
	options tcp.Options
	address string
	counts  tcp.Counts
	tiles   []*tile

	mu        sync.Mutex
	connected int
	ready     chan struct{} // closed when every tile was connected
	named     string
}

// tile is the stream of one tile. The watcher's lock guards its fields.
type tile struct {
	index   int
	quality volumetric.Quality
	// conn is the current connection, nil if there is none, also once the watcher has closed the connection for another
	// quality. changed is signalled when another quality is requested.
	conn      net.Conn
	changed   chan struct{}
	connected bool
}

// NewWatcher returns an end that watches the given number of tiles at a quality. No connection is opened before Run.
func NewWatcher(options tcp.Options, address string, tiles int, quality volumetric.Quality) *Watcher {
	w := &Watcher{options: options, address: address, ready: make(chan struct{})}
	for i := range tiles {
		w.tiles = append(w.tiles, &tile{index: i, quality: quality, changed: make(chan struct{}, 1)})
	}
	return w
}

// Run implements carriage.End. It returns carriage.ErrEnded once the other end has closed the connections of all tiles.
func (w *Watcher) Run(ctx context.Context, to carriage.Taker) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, w.closeConnection)
	defer stop()
	failures := make([]error, len(w.tiles))
	var reading sync.WaitGroup
	for i, t := range w.tiles {
		reading.Go(func() { failures[i] = w.follow(ctx, t, to) })
	}
	reading.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(failures...)
}

// closeConnection closes all connections.
func (w *Watcher) closeConnection() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.tiles {
		if t.conn != nil {
			_ = t.conn.Close()
		}
	}
}

// follow watches a tile at the requested quality until the other end closes the connection.
func (w *Watcher) follow(ctx context.Context, t *tile, to carriage.Taker) error {
	for {
		w.mu.Lock()
		quality := t.quality
		w.mu.Unlock()
		if quality == volumetric.QualityOff {
			select {
			case <-t.changed:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		conn, err := w.open(ctx, carriage.Job{Tile: t.index, Quality: quality})
		if err != nil {
			return err
		}
		w.mu.Lock()
		if t.quality == quality && ctx.Err() == nil {
			w.opened(t, conn)
		} else {
			_ = conn.Close()
		}
		w.mu.Unlock()
		w.read(conn, to)
		w.mu.Lock()
		// The quality may have changed twice, and be the same again.
		ended := t.conn == conn
		t.conn = nil
		w.mu.Unlock()
		_ = conn.Close()
		switch {
		case ctx.Err() != nil:
			return nil
		case ended:
			return carriage.ErrEnded
		}
	}
}

// open opens a connection and requests a stream.
func (w *Watcher) open(ctx context.Context, stream carriage.Job) (net.Conn, error) {
	conn, err := w.options.Dial(ctx, w.address)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(AppendRequest(nil, stream)); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// opened records a tile's connection.
func (w *Watcher) opened(t *tile, conn net.Conn) {
	t.conn, w.named = conn, tcp.Congestion(conn)
	if !t.connected {
		t.connected = true
		if w.connected++; w.connected == len(w.tiles) {
			close(w.ready)
		}
	}
}

// read reads frames until the connection ends.
func (w *Watcher) read(conn net.Conn, to carriage.Taker) {
	r := tcp.NewReader(conn, &w.counts)
	for {
		first, err := r.First()
		if err != nil {
			return
		}
		data, err := ReadFrame(r)
		if err != nil {
			return
		}
		last := r.Last()
		to.Take(&carriage.Arrival{Data: data, First: first, Last: last, Whole: last})
	}
}

// Ready implements carriage.End.
func (w *Watcher) Ready(ctx context.Context) error {
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Wanted implements carriage.End.
func (w *Watcher) Wanted(int, volumetric.Quality) bool { return false }

// Send implements carriage.End: this end does not publish.
func (w *Watcher) Send(context.Context, *carriage.Frame) (carriage.Departure, error) {
	return carriage.Departure{}, nil
}

// Choose implements carriage.End. Choose closes the connections of tiles whose quality changes; follow then opens new
// connections.
func (w *Watcher) Choose(_ context.Context, qualities []volumetric.Quality) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.choose(qualities)
	return nil
}

// choose is Choose for a caller that holds the lock.
func (w *Watcher) choose(qualities []volumetric.Quality) {
	for i, t := range w.tiles {
		if i >= len(qualities) || qualities[i] == t.quality {
			continue
		}
		t.quality = qualities[i]
		if t.conn != nil {
			_ = t.conn.Close()
			t.conn = nil
		}
		select {
		case t.changed <- struct{}{}:
		default:
		}
	}
}

// Traffic implements carriage.End.
func (w *Watcher) Traffic() carriage.Traffic {
	return carriage.Traffic{Received: w.counts.Received.Load()}
}

// Congestion returns the kernel's name of the latest connection's congestion control.
func (w *Watcher) Congestion() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.named
}

// Close implements carriage.End.
func (w *Watcher) Close() error {
	w.closeConnection()
	return nil
}
