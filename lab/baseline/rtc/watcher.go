package rtc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/lab/wallclock"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Watcher is the end that watches one publisher.
type Watcher struct {
	address string
	http    *http.Client
	pc      *webrtc.PeerConnection
	quality volumetric.Quality
	tiles   int
	counts  atomic.Int64

	connected chan struct{}
	failed    chan struct{}
	// reading counts the goroutines that read tracks. No goroutine starts after closed is set.
	reading sync.WaitGroup

	mu     sync.Mutex
	closed bool
	taker  carriage.Taker // nil before Run
	given  chan struct{}  // closed when taker is set
}

// Connect returns an end that watches the given number of tiles of a publisher at a quality. No packet is sent before
// Run.
func Connect(address string, tiles int, quality volumetric.Quality) (*Watcher, error) {
	w := &Watcher{
		address: address, tiles: tiles, quality: quality, http: &http.Client{Transport: &http.Transport{}},
		connected: make(chan struct{}), failed: make(chan struct{}), given: make(chan struct{}),
	}
	api, err := api(receiving)
	if err != nil {
		return nil, err
	}
	if w.pc, err = api.NewPeerConnection(webrtc.Configuration{}); err != nil {
		return nil, err
	}
	connected, failed := sync.OnceFunc(func() { close(w.connected) }), sync.OnceFunc(func() { close(w.failed) })
	w.pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		switch state {
		case webrtc.PeerConnectionStateConnected:
			connected()
		case webrtc.PeerConnectionStateFailed, webrtc.PeerConnectionStateClosed, webrtc.PeerConnectionStateDisconnected:
			failed()
		}
	})
	w.pc.OnTrack(func(remote *webrtc.TrackRemote, _ *webrtc.RTPReceiver) { w.begin(func() { w.read(remote) }) })
	for range tiles {
		if _, err := w.pc.AddTransceiverFromKind(webrtc.RTPCodecTypeVideo,
			webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}); err != nil {
			_ = w.pc.Close()
			return nil, err
		}
	}
	return w, nil
}

// begin starts a goroutine unless the end is closed. Pion reports tracks on its own goroutines, possibly late.
func (w *Watcher) begin(read func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.reading.Go(read)
	}
}

// read assembles the frames of a track until the track ends.
func (w *Watcher) read(remote *webrtc.TrackRemote) {
	<-w.given
	var a Assembler
	for {
		packet, _, err := remote.ReadRTP()
		if err != nil {
			return
		}
		w.counts.Add(int64(len(packet.Payload) + rtpOverhead))
		if arrival, err := a.Push(packet.Payload, wallclock.Now()); err == nil && arrival != nil {
			w.taker.Take(arrival)
		}
	}
}

// Run implements carriage.End. It returns carriage.ErrEnded once the connection is lost.
func (w *Watcher) Run(ctx context.Context, to carriage.Taker) error {
	w.mu.Lock()
	w.taker = to
	w.mu.Unlock()
	close(w.given)
	qualities := make([]volumetric.Quality, w.tiles)
	for i := range qualities {
		qualities[i] = w.quality
	}
	err := w.await(ctx, qualities)
	if err == nil {
		err = w.negotiate(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	select {
	case <-w.failed:
		return carriage.ErrEnded
	case <-ctx.Done():
		return nil
	}
}

const (
	// patience is the time limit for a publisher to start; retryInterval is the interval between requests.
	patience      = 30 * time.Second
	retryInterval = 50 * time.Millisecond
)

// await requests qualities from a publisher as soon as it has started.
func (w *Watcher) await(ctx context.Context, qualities []volumetric.Quality) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := w.Choose(ctx, qualities)
		if err == nil || errors.Is(err, errRefused) {
			return err
		}
		timer := time.NewTimer(retryInterval)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// negotiate sends the offer and applies the answer.
func (w *Watcher) negotiate(ctx context.Context) error {
	offer, err := w.pc.CreateOffer(nil)
	if err == nil {
		err = describeLocally(ctx, w.pc, offer)
	}
	if err != nil {
		return err
	}
	answer, err := w.post(ctx, offerPath, strings.NewReader(w.pc.LocalDescription().SDP))
	if err != nil {
		return err
	}
	return w.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer})
}

// errRefused reports a publisher's refusal. The wrapping error has the answer.
var errRefused = errors.New("the publisher rejected the request")

// post sends a request and returns the answer.
func (w *Watcher) post(ctx context.Context, path string, body io.Reader) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.address+path, body)
	if err != nil {
		return "", err
	}
	response, err := w.http.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%w: %s: %.200s", errRefused, response.Status, answer)
	}
	return string(answer), err
}

// Ready implements carriage.End.
func (w *Watcher) Ready(ctx context.Context) error {
	select {
	case <-w.connected:
		return nil
	case <-w.failed:
		return errFailed
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

// Choose implements carriage.End: it sends a request to the publisher by HTTP.
func (w *Watcher) Choose(ctx context.Context, qualities []volumetric.Quality) error {
	text, err := json.Marshal(qualities)
	if err != nil {
		return err
	}
	_, err = w.post(ctx, choicePath, bytes.NewReader(text))
	return err
}

// Traffic implements carriage.End.
func (w *Watcher) Traffic() carriage.Traffic { return carriage.Traffic{Received: w.counts.Load()} }

// Close implements carriage.End.
func (w *Watcher) Close() error {
	select {
	case <-w.given:
	default:
		close(w.given) // also ends tracks that wait for a taker
	}
	err := w.pc.GracefulClose()
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.reading.Wait()
	w.http.CloseIdleConnections()
	return err
}
