package fanout

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/logging"
	pionudp "github.com/pion/transport/v5/udp"
	"github.com/pion/webrtc/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/volsfu/volsfu/internal/udp"
)

// The addresses of the server's interface.
const (
	// PublishPath accepts a Description that offers tracks, ReceivePath a Description that offers to receive tracks.
	PublishPath = "/publish"
	ReceivePath = "/receive"
	// MetricsPath has the server's counters in Prometheus's text format, and the counters of the process and of the Go
	// runtime.
	MetricsPath = "/metrics"
)

// The names of the server's own metrics.
const (
	// MetricPackets counts RTP packets by the label direction: in from publishers, out to receivers.
	MetricPackets = "fanout_packets_total"
	// MetricTracks is the number of tracks that have begun.
	MetricTracks = "fanout_tracks"
	// MetricResidence is a histogram of the time of packets in the server, in seconds. The time begins when Pion's
	// track returns a packet, after the packet was read from the socket, decrypted and queued, and ends with the write
	// to the last receiver.
	MetricResidence = "fanout_residence_seconds"
)

// Description is an offer or an answer with all its candidates.
type Description struct {
	SDP string `json:"sdp"`
}

// descriptionBytes bounds an offer: 1 kB per line, for more lines than a measurement has.
const descriptionBytes = 2 << 20

// bufferBytes is the requested size of the media socket's buffers. It is volsfu's default, so that neither server loses
// packets that the other server would hold.
const bufferBytes = 8 << 20

// residenceBounds are 25 % apart, from 1 µs to 15 s; quantiles have the same resolution.
var residenceBounds = prometheus.ExponentialBuckets(1e-6, 1.25, 75)

// Server is a running server.
type Server struct {
	api      *webrtc.API
	media    *net.UDPConn
	mux      ice.UDPMux
	listener net.Listener
	http     *http.Server

	in, out    atomic.Uint64
	residence  prometheus.Histogram
	forwarding sync.WaitGroup

	mu     sync.Mutex
	closed bool
	peers  []*webrtc.PeerConnection
	tracks []*track
}

// track is one incoming track, with its number of receivers.
type track struct {
	*webrtc.TrackLocalStaticRTP
	bound atomic.Int64
}

// Bind implements webrtc.TrackLocal.
func (t *track) Bind(c webrtc.TrackLocalContext) (webrtc.RTPCodecParameters, error) {
	codec, err := t.TrackLocalStaticRTP.Bind(c)
	if err == nil {
		t.bound.Add(1)
	}
	return codec, err
}

// Unbind implements webrtc.TrackLocal.
func (t *track) Unbind(c webrtc.TrackLocalContext) error {
	err := t.TrackLocalStaticRTP.Unbind(c)
	if err == nil {
		t.bound.Add(-1)
	}
	return err
}

// Sockets selects the method of sending.
type Sockets int

const (
	// Single sends each packet with one system call, as Pion does by default.
	Single Sockets = iota
	// Batched collects packets of all receivers and sends them with one call (sendmmsg): pion/transport's BatchConn,
	// which LiveKit's SFU uses with the values below.
	Batched
)

// LiveKit's defaults: a batch is sent when it has batchPackets packets, or after batchInterval.
const (
	batchPackets  = 128
	batchInterval = 2 * time.Millisecond
)

// Listen starts a server with its interface at an address host:port. Media uses a UDP port of the same host that the
// system chooses.
func Listen(address string, sockets Sockets) (*Server, error) {
	s := &Server{residence: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: MetricResidence, Help: "Time from the track's return of a packet to its write to the last receiver.",
		Buckets: residenceBounds,
	})}
	if err := s.listen(address); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("listen: %w", err)
	}
	udp.EnlargeBuffers(s.media, bufferBytes, bufferBytes)
	logs := logging.NewDefaultLoggerFactory()
	logs.DefaultLogLevel = logging.LogLevelDisabled
	var media net.PacketConn = s.media
	if sockets == Batched {
		media = pionudp.NewBatchConn(s.media, batchPackets, batchInterval)
	}
	s.mux = webrtc.NewICEUDPMux(logs.NewLogger("ice"), media)
	settings := webrtc.SettingEngine{LoggerFactory: logs}
	settings.SetICEUDPMux(s.mux)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	engine, interceptors := &webrtc.MediaEngine{}, &interceptor.Registry{}
	if err := errors.Join(RegisterCodecs(engine), webrtc.RegisterDefaultInterceptors(engine,
		interceptors)); err != nil {
		_ = s.Close()
		return nil, err
	}
	s.api = webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithInterceptorRegistry(interceptors),
		webrtc.WithSettingEngine(settings))
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.http.Serve(s.listener) }()
	return s, nil
}

// listen opens both ports.
func (s *Server) listen(address string) error {
	var err error
	if s.listener, err = net.Listen("tcp4", address); err != nil {
		return err
	}
	s.media, err = net.ListenUDP("udp4", &net.UDPAddr{IP: s.listener.Addr().(*net.TCPAddr).IP})
	return err
}

// Address returns the address of the interface, as host:port.
func (s *Server) Address() string { return s.listener.Addr().String() }

// handler serves the interface.
func (s *Server) handler() http.Handler {
	registry := prometheus.NewRegistry()
	count := func(direction string, c *atomic.Uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: MetricPackets, Help: "RTP packets by direction.",
			ConstLabels: prometheus.Labels{"direction": direction},
		}, func() float64 { return float64(c.Load()) })
	}
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		count("in", &s.in), count("out", &s.out), s.residence,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: MetricTracks, Help: "Tracks that have begun."},
			func() float64 { return float64(len(s.begun())) }))
	mux := http.NewServeMux()
	mux.Handle("GET "+MetricsPath, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("POST "+PublishPath, func(w http.ResponseWriter, r *http.Request) { s.negotiate(w, r, s.publish) })
	mux.HandleFunc("POST "+ReceivePath, func(w http.ResponseWriter, r *http.Request) { s.negotiate(w, r, s.receive) })
	return mux
}

// begun returns the tracks so far.
func (s *Server) begun() []*track {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*track(nil), s.tracks...)
}

// negotiate answers an offer. prepare prepares the peer connection for the offer.
func (s *Server) negotiate(w http.ResponseWriter, r *http.Request, prepare func(*webrtc.PeerConnection) error) {
	var offer Description
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, descriptionBytes)).Decode(&offer); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := s.answer(offer, prepare)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	data, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data)
}

var errClosed = errors.New("server is closed")

// answer makes a peer connection for an offer.
func (s *Server) answer(offer Description, prepare func(*webrtc.PeerConnection) error) (Description, error) {
	pc, err := s.api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return Description{}, err
	}
	if err := s.keep(pc); err != nil {
		return Description{}, errors.Join(err, pc.Close())
	}
	if err := prepare(pc); err != nil {
		return Description{}, err
	}
	if err := pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer,
		SDP: offer.SDP}); err != nil {
		return Description{}, err
	}
	answer, err := pc.CreateAnswer(nil)
	if err != nil {
		return Description{}, err
	}
	gathered := webrtc.GatheringCompletePromise(pc)
	if err := pc.SetLocalDescription(answer); err != nil {
		return Description{}, err
	}
	<-gathered
	return Description{SDP: pc.LocalDescription().SDP}, nil
}

// keep stores a peer connection until the server is closed.
func (s *Server) keep(pc *webrtc.PeerConnection) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.peers = append(s.peers, pc)
	return nil
}

// Close ends all connections and waits for the forwarding goroutines.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	peers := s.peers
	s.mu.Unlock()
	var err error
	if s.http != nil {
		err = s.http.Close()
	} else if s.listener != nil {
		err = s.listener.Close()
	}
	for _, pc := range peers {
		err = errors.Join(err, pc.Close())
	}
	s.forwarding.Wait()
	if s.mux != nil {
		err = errors.Join(err, s.mux.Close())
	} else if s.media != nil {
		err = errors.Join(err, s.media.Close())
	}
	return err
}
