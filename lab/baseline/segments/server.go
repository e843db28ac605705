package segments

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/lab/baseline/tcp"
	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// headerTimeout is the time limit for a request's header; stopTimeout is the time limit for the last requests.
const (
	headerTimeout = 10 * time.Second
	stopTimeout   = time.Second
)

// Serve runs an origin until the context ends. listening is called with its address.
func Serve(ctx context.Context, options tcp.Options, address string, listening func(string)) (*carriage.Relayed,
	error) {
	listener, err := options.Listen(ctx, address)
	if err != nil {
		return nil, err
	}
	o := newOrigin()
	web := &http.Server{Handler: o.handler(), ReadHeaderTimeout: headerTimeout,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	listening(listener.Addr().String())
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		finishing, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		if web.Shutdown(finishing) != nil {
			_ = web.Close()
		}
	})
	err = web.Serve(listener)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return o.relayed(), err
}

// The paths of the origin.
const (
	segmentPath = "/{peer}/{tile}/{quality}/{segment}"
	latestPath  = "/{peer}/{tile}/latest"
	peerPath    = "/{peer}"
)

func (o *origin) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT "+segmentPath, o.put)
	mux.HandleFunc("GET "+segmentPath, o.get)
	mux.HandleFunc("GET "+latestPath, o.newest)
	mux.HandleFunc("DELETE "+peerPath, func(w http.ResponseWriter, r *http.Request) { o.end(r.PathValue("peer")) })
	return mux
}

// ErrPath reports an invalid path. The wrapping error describes it.
var ErrPath = errors.New("malformed path")

// parsePath parses the parts of a segment's path.
func parsePath(tile, quality, number string) (job carriage.Job, segment int64, err error) {
	t, err1 := strconv.Atoi(tile)
	q, err2 := strconv.Atoi(quality)
	segment, err3 := strconv.ParseInt(number, 10, 64)
	if errors.Join(err1, err2, err3) != nil || t < 0 || t >= volumetric.MaxTiles || q < 0 ||
		q >= volumetric.MaxQualities || segment < 0 {
		return job, 0, fmt.Errorf("%w: tile %.16q, quality %.16q, segment %.32q", ErrPath, tile, quality, number)
	}
	return carriage.Job{Tile: t, Quality: volumetric.Quality(q)}, segment, nil
}

func (o *origin) put(w http.ResponseWriter, r *http.Request) {
	job, number, err := parsePath(r.PathValue("tile"), r.PathValue("quality"), r.PathValue("segment"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := o.receive(o.begin(r.PathValue("peer"), job, number), r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
	}
}

func (o *origin) get(w http.ResponseWriter, r *http.Request) {
	job, number, err := parsePath(r.PathValue("tile"), r.PathValue("quality"), r.PathValue("segment"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s, err := o.find(r.Context(), r.PathValue("peer"), job, number)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	// Without a length the response is sent in chunks.
	_ = o.send(r.Context(), s, w, func() { _ = http.NewResponseController(w).Flush() })
}

// refuse answers with the reason why there is no segment.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	switch {
	case errors.Is(err, errGone):
		status = http.StatusNotFound
	case errors.Is(err, errEnded):
		status = http.StatusGone
	}
	http.Error(w, err.Error(), status)
}

func (o *origin) newest(w http.ResponseWriter, r *http.Request) {
	job, _, err := parsePath(r.PathValue("tile"), "0", "0")
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	number, err := o.latest(r.Context(), r.PathValue("peer"), job.Tile)
	if err != nil {
		refuse(w, err)
		return
	}
	_, _ = fmt.Fprintf(w, "%d", number)
}
