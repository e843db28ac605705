package server

import (
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/volsfu/volsfu/clients/web"
	"github.com/volsfu/volsfu/internal/admin"
	"github.com/volsfu/volsfu/internal/cluster/certificate"
	"github.com/volsfu/volsfu/internal/cluster/ticket"
	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/metrics"
	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/peer"
	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/internal/viewer"
	"github.com/volsfu/volsfu/pkg/signal"
)

// startup starts the parts of a server. It has what several parts need and no part keeps. Parts also complete the
// server's configuration for the parts that start later.
type startup struct {
	*Server
	options  Options
	registry *prometheus.Registry
	counts   *metrics.Metrics
	guard    *panics.Guard
	// clients and operators check the tokens of clients and of operators.
	clients   signalling.Authenticator
	operators admin.Gate
	// requests logs the requests of clients.
	requests *signalling.Log
	limits   *signalling.AddressLimits
	// mux serves the requests of clients, host describes the server to operators.
	mux  *http.ServeMux
	host operating
	// own is the certificate of this node, sealer seals tickets for clients, and nodes serves the requests of other
	// nodes. They are nil if the server runs alone.
	own    *certificate.Node
	sealer *ticket.Sealer
	nodes  *http.ServeMux
	// clustered is the cluster for operators, nil if the server runs alone.
	clustered *clustered
}

func newStartup(s *Server, o Options) *startup {
	return &startup{
		Server: s, options: o, registry: prometheus.NewRegistry(), requests: signalling.NewLog(s.log),
		mux: http.NewServeMux(), host: operating{s, o.Version, time.Now()},
	}
}

// parts returns the functions that start the parts, in an order in which each part finds those that it needs.
func (s *startup) parts() []func() error {
	return []func() error{
		s.readKeys, s.configureTLS, s.count, s.openMedia, s.startEngine, s.followEdge, s.startWebhooks, s.openRecorder,
		s.openCluster, s.openNode, s.operateCluster, s.startTURN, s.openAddressLimits, s.serveClients, s.serveVR2Gather,
		s.openListener, s.joinCluster, s.serveOperators,
	}
}

// run starts all parts.
func (s *startup) run() error {
	for _, start := range s.parts() {
		if err := start(); err != nil {
			return err
		}
	}
	s.files.start()
	s.announce(s.options)
	return nil
}

// readKeys reads the keys of tokens.
func (s *startup) readKeys() (err error) {
	s.clients, s.operators, err = newAuthenticator(s.options, s.files, func(t admission.Token) bool {
		return s.node.Revoked(t)
	})
	return err
}

// count registers the metrics, and makes the guard the one of all parts.
func (s *startup) count() (err error) {
	if s.counts, err = metrics.New(s.registry, s.options.Version); err != nil {
		return err
	}
	if s.guard, err = newGuard(s.registry, s.log); err != nil {
		return err
	}
	c := &s.config
	c.Media.Guard, c.Forward.Guard, c.Rooms.Guard, c.Signalling.Guard = s.guard, s.guard, s.guard, s.guard
	return nil
}

// openMedia opens the media port.
func (s *startup) openMedia() (err error) {
	s.config.Media.RelayedAddress = s.relayedAddress
	if s.endpoint, err = s.listenMedia(s.config.Media, s.options); err != nil {
		return err
	}
	go s.watch(s.endpoint.Failed())
	return nil
}

func (s *startup) startEngine() error {
	s.engine = forward.NewEngine(s.config.Forward, peer.NewBatch)
	return errors.Join(
		metrics.RegisterDataPlane(s.registry, dataPlane{s.engine, s.endpoint}),
		metrics.Register(s.registry, append(limitReadings(s.engine, s.endpoint), iceTCPReadings(s.endpoint)...)...),
	)
}

func (s *startup) openNode() (err error) {
	c := &s.config.Rooms
	if c.ICEServers, err = s.iceServers(s.config.ICEServers); err != nil {
		return err
	}
	s.node, err = sfu.NewNode(*c, s.endpoint, s.engine, s.counts, s.log)
	return err
}

// serveClients serves signalling, WHIP and WHEP, the list of rooms, the pages, and the operators' API for those with a
// token.
func (s *startup) serveClients() error {
	if s.options.VR2GatherOnly {
		s.mux.HandleFunc("GET /{$}", landing)
		return nil
	}
	c, dev := s.config.Signalling, s.config.Server.Dev
	handler, err := signalling.NewServer(c, onlyNode{s.node}, s.clients, s.counts, s.requests, dev)
	if err != nil {
		return err
	}
	s.enterByCluster(handler)
	s.mux.Handle(signal.Path, s.limits.Guard(handler))
	origins := c.Pages(dev)
	rooms := signalling.NewRooms(c, s.node, s.clients, s.counts, dev)
	s.mux.Handle(signalling.RoomsPath, s.limits.Guard(origins.Share(rooms, http.MethodGet)))
	s.serveWHIP()
	pages, _ := web.Pages()
	s.mux.Handle("/", viewer.New(pages, c.AllowedOrigins, s.member != nil))
	api := s.api(s.operators)
	s.mux.Handle(admin.APIPath, s.limits.Guard(origins.Share(api, admin.Methods...)))
	return nil
}

// openListener opens the listener for the requests of clients.
func (s *startup) openListener() error {
	return s.listen(guarded(s.guard, placeRequest, s.mux), s.requests.ForHTTP())
}

// serveOperators serves metrics, the API and profiles on the operators' listener, if there is one.
func (s *startup) serveOperators() (err error) {
	c := s.config.Admin
	if c.Listen == "" {
		return nil
	}
	endpoints := admin.Handler(admin.Endpoints{
		Metrics: s.registry, API: s.api(admin.Loopback{}),
		Checks: []admin.Readiness{s.Server}, CommandLine: config.RedactArguments(os.Args), AllowedHosts: c.AllowedHosts,
	})
	s.admin, err = admin.Start(c.Listen, guarded(s.guard, placeOperator, endpoints))
	return err
}
