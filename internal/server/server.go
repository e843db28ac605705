package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/acme"
	"github.com/volsfu/volsfu/internal/admin"
	"github.com/volsfu/volsfu/internal/cluster/entry"
	"github.com/volsfu/volsfu/internal/cluster/member"
	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/dialect/vr2gather"
	"github.com/volsfu/volsfu/internal/fault"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/recorder"
	"github.com/volsfu/volsfu/internal/reload"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/internal/turnserver"
	"github.com/volsfu/volsfu/internal/udp"
	"github.com/volsfu/volsfu/internal/webhook"
	"github.com/volsfu/volsfu/pkg/signal"
)

// Options configure a server.
type Options struct {
	Config  config.Config
	Version string
	Log     *zap.Logger
	// VR2GatherOnly disables signalling v1, so that no part of the server needs a token if the dialect does not.
	VR2GatherOnly bool
	// LastMediaPort is the last port of a range that begins with Config.Media.Port. Media uses the first free port of
	// the range. 0 is a range of one port.
	LastMediaPort int
	// Media replaces the UDP socket of the media port if it is not nil, for emulated networks.
	Media net.PacketConn
	// LogFile is the file of Log, nil if there is none. The server opens the file again when it has been moved.
	LogFile *reload.LogFile
}

// Server is a running server.
type Server struct {
	log      *zap.Logger
	config   config.Config
	endpoint *transport.Endpoint
	engine   *forward.Engine
	node     *sfu.Node
	// recorder records rooms, nil without a folder for recordings.
	recorder *recorder.Recorder
	// dialect takes VR2Gather's peers, nil if they may not connect.
	dialect  *vr2gather.Server
	listener net.Listener
	http     *http.Server
	// connections limits the connections of http.
	connections *connections
	admin       *admin.Server
	// turn relays to the media port, nil if clients cannot use it. turnTest is the result of the self-test, nil until
	// the test has ended. endTURNTest ends the test and waits for its goroutine, nil if there is no test.
	turn        *turnserver.Server
	turnTest    atomic.Pointer[turnResult]
	endTURNTest func()
	// stopping is set by Stop.
	stopping atomic.Bool
	// files are read again on SIGHUP and when they change.
	files *reloader
	// tls is the configuration of the clients' listener, nil without TLS. issuer is nil unless a certificate authority
	// issues the certificate.
	tls    *tls.Config
	issuer *acme.Issuer
	// edge orders copies from an edge of volnet, nil if none is configured.
	edge *edgeTrigger
	// webhooks posts the events of rooms, nil if no endpoint is configured.
	webhooks *webhook.Sender
	// member is this server as a node of a cluster, nil if the server runs alone. entry decides where clients join, nil
	// if the server runs alone or has no signalling. nodeListener and forNodes serve other nodes, signalling has the
	// clients; both are set with member and entry only.
	member       *member.Member
	entry        *entry.Entry
	signalling   *signalling.Server
	nodeListener net.Listener
	forNodes     *http.Server
	// toNodes sends requests to other nodes, nil if the server runs alone.
	toNodes *http.Transport
	// draining is set when new clients are refused.
	draining atomic.Bool
	// leaving receives an operator's request to drain.
	leaving chan struct{}
	// failed receives the error of a listener or a media socket that failed.
	failed chan error
}

// Start starts a server. The server accepts clients when Start returns.
func Start(o Options) (*Server, error) {
	if fault.Injected {
		fault.Start()
	}
	s := &Server{
		log: o.Log, config: o.Config, files: &reloader{log: o.Log, logFile: o.LogFile},
		leaving: make(chan struct{}, 1), failed: make(chan error, 1),
	}
	if err := newStartup(s, o).run(); err != nil {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Stop(ctx)
		return nil, err
	}
	return s, nil
}

// announce logs the listening addresses, and warns of socket buffers that are too small.
func (s *Server) announce(o Options) {
	c := o.Config
	fields := []zap.Field{zap.Uint16("media_port", s.MediaPort()), zap.String("admin", s.AdminAddress()),
		zap.Bool("dev", c.Server.Dev)}
	if !o.VR2GatherOnly {
		fields = append(fields, zap.String("signalling", s.URL()+signal.Path))
	}
	if c.VR2Gather.Enabled {
		fields = append(fields, zap.String("vr2gather", s.URL()+vr2gather.Path),
			zap.Bool("vr2gather_token", c.VR2Gather.RequireToken))
	}
	s.log.Info("volsfu is ready", fields...)
	s.announceAddresses()
	warnOfBuffers(s.log, c.Media, s.endpoint.ReceiveBuffer(), s.endpoint.SendBuffer())
}

// listenMedia opens the media sockets on the first free port.
func (s *Server) listenMedia(c transport.Config, o Options) (*transport.Endpoint, error) {
	if o.Media != nil {
		return transport.Attach(c, o.Media)
	}
	for {
		endpoint, err := transport.Listen(c)
		switch {
		case err == nil:
			return endpoint, nil
		case c.Port >= o.LastMediaPort || !errors.Is(err, syscall.EADDRINUSE):
			return nil, fmt.Errorf("media port: %w", err)
		}
		s.log.Info("media port is in use", zap.Int("port", c.Port))
		c.Port++
	}
}

// listen serves the requests of clients, with TLS if it is configured. Failed connections are logged to failures.
func (s *Server) listen(handler http.Handler, failures *stdlog.Logger) error {
	listener, err := net.Listen("tcp", s.config.Server.Listen)
	if err != nil {
		return fmt.Errorf("listen for signalling: %w", err)
	}
	s.listener = listener
	serving := listener
	if s.tls != nil {
		handler = withStrictTransport(handler)
		serving = tls.NewListener(listener, s.tls)
	}
	if s.servesTURN() {
		serving = s.withTURN(listener, failures)
	}
	s.http = newHTTPServer(handler)
	s.http.ConnState, s.http.ErrorLog = s.connections.changed, failures
	go func() {
		if err := s.http.Serve(serving); !errors.Is(err, http.ErrServerClosed) {
			s.fail(fmt.Errorf("serve signalling: %w", err))
		}
	}()
	return nil
}

// landing answers browsers that open the address of a server for VR2Gather's clients only.
func landing(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintf(w, "volsfu is running for VR2Gather's clients, which connect to %s.\n", vr2gather.Path)
}

// URL returns the address for clients on this host, as ws://host:port or wss://host:port.
func (s *Server) URL() string {
	scheme := "ws"
	if s.tls != nil {
		scheme = "wss"
	}
	address := s.listener.Addr().String()
	if host, port, err := net.SplitHostPort(address); err == nil {
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			address = net.JoinHostPort("127.0.0.1", port)
		}
	}
	return scheme + "://" + address
}

// AdminAddress returns the address of the operators' listener, empty if it is disabled.
func (s *Server) AdminAddress() string {
	if s.admin == nil {
		return ""
	}
	return s.admin.Address().String()
}

// MediaPort returns the port of the media sockets.
func (s *Server) MediaPort() uint16 { return s.endpoint.Port() }

// Stats returns the counters of the data plane.
func (s *Server) Stats() counters.Stats { return s.engine.Stats() }

// Codepoints returns the numbers of datagrams that the media sockets have received and sent, by ECN codepoint.
func (s *Server) Codepoints() (received, sent udp.CodepointCounts) {
	stats := s.endpoint.Stats()
	return stats.ReceivedECN, stats.SentECN
}

// watch reports failed media sockets until the endpoint is closed.
func (s *Server) watch(failed <-chan error) {
	for err := range failed {
		s.fail(err)
	}
}

// fail records the first failure; further ones are dropped.
func (s *Server) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// Failed returns the channel with the error of a failed listener or media socket.
func (s *Server) Failed() <-chan error { return s.failed }

// NotReady implements admin.Readiness.
func (s *Server) NotReady() []string {
	if s.draining.Load() {
		return []string{"draining"}
	}
	return nil
}

// Drain informs all clients that the server will stop, refuses new ones, and waits until the rooms are empty, at most
// for the configured time or until the context ends. In a cluster, clients move to other nodes before.
func (s *Server) Drain(ctx context.Context) {
	s.draining.Store(true)
	end := time.Now().Add(s.config.Server.DrainTime)
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	s.log.Info("draining", zap.Duration("at_most", s.config.Server.DrainTime))
	s.node.RefuseJoins()
	switch {
	case s.entry != nil:
		s.entry.Drain(ctx)
	case s.member != nil:
		s.member.Drain()
	}
	s.node.Drain(ctx, time.Until(end))
}

// Reload reloads the certificate and the keys of tokens, and opens the log file again. Files that are invalid change
// nothing, and their errors are logged. With ACME, a certificate that could not be obtained is requested at once.
func (s *Server) Reload() {
	s.files.all()
	if s.issuer != nil {
		s.issuer.Retry()
	}
}

// Stop ends the remaining sessions, and releases everything. The context bounds the remaining requests to the
// operators' listener.
func (s *Server) Stop(ctx context.Context) error {
	s.draining.Store(true)
	s.stopping.Store(true)
	if s.endTURNTest != nil {
		s.endTURNTest()
	}
	if s.node != nil {
		now, cancel := context.WithCancel(ctx)
		cancel()
		s.node.Drain(now, 0)
	}
	errs := []error{s.closeCluster()}
	if s.recorder != nil {
		s.recorder.Close(ctx)
	}
	s.files.close()
	if s.issuer != nil {
		s.issuer.Close()
	}
	if s.http != nil {
		errs = append(errs, s.http.Close())
	} else if s.listener != nil {
		errs = append(errs, s.listener.Close())
	}
	if s.webhooks != nil {
		s.webhooks.Stop(ctx)
	}
	if s.turn != nil {
		errs = append(errs, s.turn.Close())
	}
	if s.edge != nil {
		s.edge.close()
	}
	if s.engine != nil {
		s.engine.Close()
	}
	if s.endpoint != nil {
		errs = append(errs, s.endpoint.Close())
	}
	if s.admin != nil {
		errs = append(errs, s.admin.Stop(ctx))
	}
	return errors.Join(errs...)
}
