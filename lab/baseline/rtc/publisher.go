package rtc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/interceptor/pkg/cc"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/lab/wallclock"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// The paths of a publisher. Session descriptions are sent as text, choices as a JSON list.
const (
	offerPath  = "/offer"
	choicePath = "/choice"
)

const (
	// maxBody bounds a request: a session description has about 1 kB per tile.
	maxBody = 1 << 20
	// maxReport is larger than any packet of reports.
	maxReport = 1500
	// headerTimeout is the time limit for a request's header.
	headerTimeout = 10 * time.Second
	// estimateInterval is the interval at which the estimate is recorded.
	estimateInterval = 100 * time.Millisecond
)

// Publisher is the end that publishes to one watcher, which connects by HTTP.
type Publisher struct {
	publication volumetric.Publication
	least       volumetric.Bitrate
	adapt       bool
	listener    net.Listener
	pc          *webrtc.PeerConnection
	estimators  chan cc.BandwidthEstimator
	estimator   cc.BandwidthEstimator
	tracks      []*track
	connected   chan struct{}
	failed      chan struct{}
	sent        atomic.Int64
	begun       time.Time
	reading     sync.WaitGroup

	mu        sync.Mutex
	qualities []volumetric.Quality
	estimates []estimate
}

// estimate is an estimate with its time.
type estimate struct {
	at   time.Time
	mbps float64
}

// track is the track of one tile.
type track struct {
	local *webrtc.TrackLocalStaticRTP

	sending  sync.Mutex
	sequence uint16
	payload  []byte
}

// Listen opens the end of a publication whose estimate is bounded by least and most. If adapt is set, the estimate
// selects the quality of all tiles; otherwise the watcher selects.
func Listen(
	address string, publication volumetric.Publication, estimate Estimator, least, most volumetric.Bitrate, adapt bool,
) (*Publisher, error) {
	p := &Publisher{
		publication: publication, least: least, adapt: adapt, begun: wallclock.Now(),
		estimators: make(chan cc.BandwidthEstimator, 1), connected: make(chan struct{}), failed: make(chan struct{}),
		qualities: make([]volumetric.Quality, len(publication.Tiles)),
	}
	api, err := api(sending(estimate, least, most, p.estimators))
	if err != nil {
		return nil, err
	}
	if p.pc, err = api.NewPeerConnection(webrtc.Configuration{}); err != nil {
		return nil, err
	}
	p.estimator = <-p.estimators
	for tile := range publication.Tiles {
		local, err := webrtc.NewTrackLocalStaticRTP(
			webrtc.RTPCodecCapability{MimeType: volumetric.MIMEVolumetric, ClockRate: clockRate},
			fmt.Sprintf("tile-%d", tile), "body")
		var sender *webrtc.RTPSender
		if err == nil {
			sender, err = p.pc.AddTrack(local)
		}
		if err != nil {
			_ = p.pc.Close()
			return nil, err
		}
		p.reading.Go(func() { readReports(sender) })
		p.tracks = append(p.tracks, &track{local: local})
	}
	p.pc.OnConnectionStateChange(p.stateChanged(sync.OnceFunc(func() { close(p.connected) }),
		sync.OnceFunc(func() { close(p.failed) })))
	if p.listener, err = net.Listen("tcp", address); err != nil {
		_ = p.pc.Close()
		return nil, err
	}
	return p, nil
}

// readReports reads a watcher's reports on a track until the track ends. Pion's estimate and repair run only while
// reports are read.
func readReports(sender *webrtc.RTPSender) {
	report := make([]byte, maxReport)
	for {
		if _, _, err := sender.Read(report); err != nil {
			return
		}
	}
}

func (p *Publisher) stateChanged(connected, failed func()) func(webrtc.PeerConnectionState) {
	return func(state webrtc.PeerConnectionState) {
		switch state {
		case webrtc.PeerConnectionStateConnected:
			connected()
		case webrtc.PeerConnectionStateFailed, webrtc.PeerConnectionStateClosed:
			failed()
		}
	}
}

// Address returns the listen address.
func (p *Publisher) Address() string { return p.listener.Addr().String() }

// Run implements carriage.End.
func (p *Publisher) Run(ctx context.Context, _ carriage.Taker) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+offerPath, p.offered)
	mux.HandleFunc("POST "+choicePath, p.chosen)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}
	stop := context.AfterFunc(ctx, func() { _ = web.Close() })
	defer stop()
	var noting sync.WaitGroup
	noting.Go(func() { p.note(ctx) })
	defer noting.Wait()
	if err := web.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// note records the estimate until the context ends.
func (p *Publisher) note(ctx context.Context) {
	ticker := time.NewTicker(estimateInterval)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			rate := p.estimator.GetTargetBitrate()
			p.mu.Lock()
			p.estimates = append(p.estimates, estimate{now, float64(rate) / 1e6})
			if p.adapt {
				p.follow(volumetric.Bitrate(rate))
			}
			p.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

// follow selects the highest quality that an estimate can carry for all tiles, or the lowest quality if the estimate
// can carry none.
func (p *Publisher) follow(estimate volumetric.Bitrate) {
	best := Affordable(p.publication, max(estimate, p.least))
	for i := range p.qualities {
		p.qualities[i] = best
	}
}

// Affordable returns the highest quality that an estimate can carry for all tiles of a publication, by its nominal
// rates and the packets' overhead. If the estimate can carry no quality, Affordable returns the lowest.
func Affordable(publication volumetric.Publication, estimate volumetric.Bitrate) volumetric.Quality {
	// The nominal rates cover payloads only, and the headers use the same path.
	const added = float64(ChunkSize+HeaderSize+rtpOverhead) / ChunkSize
	best := volumetric.Quality(0)
	for q, level := range publication.Qualities {
		if float64(level.Bitrate)*float64(len(publication.Tiles))*added <= float64(estimate) {
			best = volumetric.Quality(q)
		}
	}
	return best
}

// offered answers a watcher's offer.
func (p *Publisher) offered(w http.ResponseWriter, r *http.Request) {
	offer, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var answer webrtc.SessionDescription
	if err == nil {
		err = p.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: string(offer)})
	}
	if err == nil {
		answer, err = p.pc.CreateAnswer(nil)
	}
	if err == nil {
		err = describeLocally(r.Context(), p.pc, answer)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	_, _ = io.WriteString(w, p.pc.LocalDescription().SDP)
}

// describeLocally sets a local description and waits until the description has all candidates.
func describeLocally(ctx context.Context, pc *webrtc.PeerConnection, description webrtc.SessionDescription) error {
	gathered := webrtc.GatheringCompletePromise(pc)
	if err := pc.SetLocalDescription(description); err != nil {
		return err
	}
	select {
	case <-gathered:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// chosen applies the qualities that a watcher requests.
func (p *Publisher) chosen(w http.ResponseWriter, r *http.Request) {
	var qualities []volumetric.Quality
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&qualities); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.adapt {
		copy(p.qualities, qualities)
	}
}

// errFailed reports that the peer connection failed.
var errFailed = errors.New("the peer connection failed")

// Ready implements carriage.End: it waits for the peer connection.
func (p *Publisher) Ready(ctx context.Context) error {
	select {
	case <-p.connected:
		return nil
	case <-p.failed:
		return errFailed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Wanted implements carriage.End: one quality of each tile is sent.
func (p *Publisher) Wanted(tile int, quality volumetric.Quality) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.qualities[tile] == quality
}

// Send implements carriage.End. Pion's pacer queues packets and does not report how long.
func (p *Publisher) Send(_ context.Context, f *carriage.Frame) (carriage.Departure, error) {
	t := p.tracks[f.Tile]
	t.sending.Lock()
	defer t.sending.Unlock()
	d := carriage.Departure{First: wallclock.Now(), Copies: 1}
	ticks := uint32(f.Capture.Sub(p.begun) * clockRate / time.Second)
	for offset := 0; offset < len(f.Bytes); offset += ChunkSize {
		t.payload = AppendPayload(t.payload[:0], f.Number, f.Bytes, offset)
		packet := rtp.Packet{
			Header: rtp.Header{Version: 2, SequenceNumber: t.sequence, Timestamp: ticks,
				Marker: offset+ChunkSize >= len(f.Bytes)},
			Payload: t.payload,
		}
		t.sequence++
		if err := t.local.WriteRTP(&packet); err != nil {
			return d, err
		}
		p.sent.Add(int64(len(t.payload) + rtpOverhead))
	}
	d.Last = wallclock.Now()
	return d, nil
}

// errPublisher is returned for a choice at a publishing end.
var errPublisher = errors.New("this end does not watch")

// Choose implements carriage.End.
func (p *Publisher) Choose(context.Context, []volumetric.Quality) error { return errPublisher }

// Traffic implements carriage.End, without retransmissions.
func (p *Publisher) Traffic() carriage.Traffic { return carriage.Traffic{Sent: p.sent.Load()} }

// Estimates implements carriage.Estimator.
func (p *Publisher) Estimates(since time.Time) []carriage.Estimate {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]carriage.Estimate, 0, len(p.estimates))
	for _, e := range p.estimates {
		list = append(list, carriage.Estimate{At: e.at.Sub(since).Seconds(), Mbps: e.mbps})
	}
	return list
}

// Close implements carriage.End.
func (p *Publisher) Close() error {
	_ = p.listener.Close()
	err := p.pc.GracefulClose()
	p.reading.Wait()
	return err
}
