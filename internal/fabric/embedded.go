package fabric

import (
	"crypto/rand"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
)

const (
	// maxPayload is the limit of the NATS server, above that of a Fabric, so that a later version may send more.
	maxPayload = 8 << 20
	// maxPending bounds the bytes that wait for one route.
	maxPending = 16 << 20
	// pingInterval and maxPings: a silent route or connection is closed after 3 s, and connected again. Nodes notice
	// the silence of a peer earlier, by the beats.
	pingInterval = time.Second
	maxPings     = 2
	// startTimeout bounds the time until the embedded server listens.
	startTimeout = 5 * time.Second
	// readyInterval is the time between two examinations of a starting server.
	readyInterval = 50 * time.Millisecond
	// handshakeTimeout bounds the TLS handshake of a route, in seconds.
	handshakeTimeout = 2.0
	// connectRetries is the number of attempts to reach a node that is no seed, at intervals of one to two seconds. The
	// addresses of nodes that have gone for good are forgotten then.
	connectRetries = 3600
)

// startEmbedded starts a NATS server inside this process, and returns the server with the password of its only user.
// The server has no seeds yet. It listens for clients on a free port of the loopback interface, because a server that
// does not listen for clients never opens its routes. The Fabric itself needs no port (Server.InProcessConn).
func startEmbedded(c Config, log *zap.Logger) (*seeds, string, error) {
	password := rand.Text()
	own := []string{prefixOf(c.Cluster) + ">"}
	rights := &server.SubjectPermission{Allow: own}
	options := &server.Options{
		ServerName: c.Node, Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoSystemAccount: true,
		MaxPayload: maxPayload, MaxPending: maxPending, PingInterval: pingInterval, MaxPingsOut: maxPings,
		Users: []*server.User{{Username: c.Node, Password: password,
			Permissions: &server.Permissions{Publish: rights, Subscribe: rights}}},
		Cluster: server.ClusterOpts{
			Name: c.Cluster, Host: c.listenHost(), Port: c.Address.RoutePort, TLSConfig: c.TLS.Clone(),
			TLSTimeout: handshakeTimeout, PingInterval: pingInterval, MaxPingsOut: maxPings,
			Permissions: &server.RoutePermissions{Import: rights, Export: rights},
			// Two nodes that learned of each other from a seed and have lost their connection try again for an hour or
			// two, unless one of them connects to a seed again.
			ConnectRetries: connectRetries,
			// One connection for each pair of nodes: the messages of a cluster need no more.
			PoolSize:    -1,
			Compression: server.CompressionOpts{Mode: server.CompressionOff},
		},
	}
	s, err := server.NewServer(options.Clone())
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrStart, err)
	}
	logger := &natsLog{log: log.Sugar()}
	s.SetLogger(logger, false, false)
	s.Start()
	if !logger.ready(s) {
		reason := "it does not listen"
		if text := logger.fatal.Load(); text != nil {
			reason = *text
		}
		s.Shutdown()
		s.WaitForShutdown()
		return nil, "", fmt.Errorf("%w: %s (port %d of routes)", ErrStart, reason, c.Address.RoutePort)
	}
	return &seeds{server: s, options: options, log: log, given: make(map[string]int)}, password, nil
}

// ready waits until a server listens. ready returns false if the server failed, or after startTimeout.
func (l *natsLog) ready(s *server.Server) bool {
	for end := time.Now().Add(startTimeout); time.Now().Before(end) && l.fatal.Load() == nil; {
		if s.ReadyForConnections(readyInterval) {
			return true
		}
	}
	return false
}

// listenHost returns the address for routes of other nodes.
func (c Config) listenHost() string {
	if c.Loopback {
		return "127.0.0.1"
	}
	return net.IPv4zero.String()
}

// natsLog writes the log of a NATS server to that of this process. Notices are details to volsfu's operators.
type natsLog struct {
	log   *zap.SugaredLogger
	fatal atomic.Pointer[string]
}

func (l *natsLog) Noticef(format string, v ...any) { l.log.Debugf("nats: "+format, v...) }
func (l *natsLog) Debugf(format string, v ...any)  { l.log.Debugf("nats: "+format, v...) }

// Warnf omits two warnings: NATS does not verify certificates, because tls.Config.VerifyConnection does, and the random
// password of this process is not encrypted.
func (l *natsLog) Warnf(format string, v ...any) {
	for _, omitted := range []string{"TLS certificate chain and hostname", "Plaintext passwords"} {
		if strings.HasPrefix(format, omitted) {
			return
		}
	}
	l.log.Infof("nats: "+format, v...)
}

// Errorf omits connections that end before the TLS handshake: another node has tried whether this one listens (seeds).
func (l *natsLog) Errorf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	if strings.Contains(text, "TLS route handshake error") && strings.HasSuffix(text, "EOF") {
		l.log.Debug("nats: " + text)
		return
	}
	l.log.Warn("nats: " + text)
}

func (l *natsLog) Tracef(string, ...any) {}

// Fatalf keeps the reason for which the server does not start. The server returns from Start after the call.
func (l *natsLog) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.fatal.Store(&text)
	l.log.Error("nats: " + text)
}
