package turnserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pion/logging"
	"github.com/pion/stun/v4"
	"github.com/pion/transport/v5/reuseport"
	"github.com/pion/turn/v5"

	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/pkg/signal"
)

const (
	// socketBuffer is the buffer of each UDP socket in bytes, in each direction.
	socketBuffer = 4 << 20
	// sweepInterval is the time between two searches for allocations whose session has ended.
	sweepInterval = 2 * time.Second
	// acceptPause is the time before the server accepts again after the system lacked descriptors or memory.
	acceptPause = 50 * time.Millisecond
)

// Media is the media port that the server relays to.
type Media interface {
	// LocalAddress returns the address that the media port is bound to, Addresses those that clients are told.
	LocalAddress() netip.AddrPort
	Addresses() []netip.AddrPort
}

// Options are the surroundings of a Server.
type Options struct {
	Config Config
	Media  Media
	// HasSession reports whether a session lives.
	HasSession func(session string) bool
	// Guard confines panics in callbacks of Pion: the request concerned is refused.
	Guard *panics.Guard
	// Failed receives the error of a socket that fails.
	Failed func(error)
}

// Server is a TURN server. Its methods are safe for concurrent use.
type Server struct {
	config      Config
	media       Media
	hasSession  func(string) bool
	guard       *panics.Guard
	failed      func(error)
	credentials credentials
	quotas      *quotas
	filter      *filter
	connections *connections
	turn        *turn.Server
	// port is the number of the UDP and TCP port, 0 without them. listener is nil then.
	port     uint16
	listener net.Listener
	// overTLS are the host and the port of TURN over TLS, empty without it.
	overTLS atomic.Pointer[string]
	running sync.WaitGroup
	closed  chan struct{}
	closing sync.Once

	up, down traffic
	refused  map[refusal]*atomic.Uint64

	mu sync.Mutex
	// allocations are by the relayed address that the client is told.
	allocations map[netip.AddrPort]*allocation
	// testing is the session of the self-test, empty at other times.
	testing string
}

// traffic counts packets in one direction.
type traffic struct{ packets, bytes atomic.Uint64 }

func (t *traffic) add(bytes int) {
	t.packets.Add(1)
	t.bytes.Add(uint64(bytes))
}

// Start starts a server.
func Start(o Options) (*Server, error) {
	if err := o.Config.Validate(); err != nil {
		return nil, err
	}
	s := &Server{
		config: o.Config, media: o.Media, hasSession: o.HasSession, guard: o.Guard, failed: o.Failed,
		credentials: newCredentials(), quotas: newQuotas(o.Config.Allocations, o.Config.AddressAllocations),
		closed: make(chan struct{}), refused: make(map[refusal]*atomic.Uint64),
		allocations: make(map[netip.AddrPort]*allocation),
	}
	for _, why := range refusals {
		s.refused[why] = new(atomic.Uint64)
	}
	s.filter = &filter{
		isMedia: s.isMedia, port: o.Media.LocalAddress().Port(), refuse: s.refuse, guard: o.Guard,
		requests: requestRate.Sources(),
	}
	s.connections = newConnections(s, o.Config)
	sockets, err := s.listen()
	if err != nil {
		return nil, err
	}
	if err := s.serve(sockets); err != nil {
		return nil, errors.Join(err, s.closeSockets(sockets))
	}
	s.running.Go(s.sweep)
	if s.listener != nil {
		s.running.Go(s.accept)
	}
	return s, nil
}

// serve starts Pion's server.
func (s *Server) serve(sockets []net.PacketConn) error {
	// Pion would log to standard error. Metrics count the refusals.
	logs := logging.NewDefaultLoggerFactory()
	logs.DefaultLogLevel = logging.LogLevelDisabled
	config := turn.ServerConfig{
		Realm: realm, LoggerFactory: logs,
		AuthHandler: s.authenticate, QuotaHandler: s.admits,
		EventHandler: turn.EventHandler{OnAuth: s.authenticated, OnAllocationCreated: s.allocated},
		// Without REQUESTED-ADDRESS-FAMILY, a client receives an allocation of the family of its connection. A media
		// port of IPv4 alone has no other family.
		StrictAddressFamily: s.media.LocalAddress().Addr().Is4(),
		ListenerConfigs: []turn.ListenerConfig{{
			Listener: s.connections, RelayAddressGenerator: allocator{s}, PermissionHandler: s.permits,
		}},
	}
	for _, socket := range sockets {
		config.PacketConnConfigs = append(config.PacketConnConfigs, turn.PacketConnConfig{
			PacketConn: socket, RelayAddressGenerator: allocator{s}, PermissionHandler: s.permits,
		})
	}
	var err error
	if s.turn, err = turn.NewServer(config); err != nil {
		return fmt.Errorf("start TURN: %w", err)
	}
	return nil
}

// listen opens the UDP sockets and the TCP port of Config.Listen. There is one socket for each core, with a reading
// goroutine each.
func (s *Server) listen() (sockets []net.PacketConn, err error) {
	if s.config.Listen == "" {
		return nil, nil
	}
	if s.listener, err = net.Listen("tcp", s.config.Listen); err != nil {
		return nil, fmt.Errorf("listen for TURN: %w", err)
	}
	address := s.listener.Addr().(*net.TCPAddr).AddrPort()
	s.port = address.Port()
	shared := net.ListenConfig{Control: reuseport.Control}
	for range runtime.GOMAXPROCS(0) {
		socket, err := shared.ListenPacket(context.Background(), "udp", address.String())
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listen for TURN: %w", err), s.closeSockets(sockets))
		}
		conn := socket.(*net.UDPConn)
		// The system's limits hold if they are lower.
		_, _ = conn.SetReadBuffer(socketBuffer), conn.SetWriteBuffer(socketBuffer)
		sockets = append(sockets, datagrams{conn, s.filter})
	}
	return sockets, nil
}

// closeSockets closes what listen has opened.
func (s *Server) closeSockets(sockets []net.PacketConn) (err error) {
	for _, socket := range sockets {
		err = errors.Join(err, socket.Close())
	}
	if s.listener != nil {
		err = errors.Join(err, s.listener.Close())
	}
	return err
}

// accept is the goroutine that accepts TCP connections.
func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		switch {
		case err == nil:
			s.connections.add(conn)
		case errors.Is(err, net.ErrClosed):
			return
		case isTemporary(err):
			select {
			case <-time.After(acceptPause):
			case <-s.closed:
				return
			}
		default:
			s.failed(fmt.Errorf("accept TURN: %w", err))
			return
		}
	}
}

// isTemporary reports whether accepting may succeed later: the system lacks descriptors or memory, or the client has
// closed the connection.
func isTemporary(err error) bool {
	for _, lack := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED,
	} {
		if errors.Is(err, lack) {
			return true
		}
	}
	return false
}

// sweep is the goroutine that ends the allocations of sessions that have ended.
func (s *Server) sweep() {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.endAllocations(func(a *allocation) bool { return !s.lives(a.user.session) })
		case <-s.closed:
			return
		}
	}
}

// endAllocations closes the selected allocations.
func (s *Server) endAllocations(selects func(*allocation) bool) {
	var ended []*allocation
	s.mu.Lock()
	for _, a := range s.allocations {
		ended = append(ended, a)
	}
	s.mu.Unlock()
	for _, a := range ended {
		if selects(a) {
			// Pion's goroutine then removes the allocation.
			_ = a.Close()
		}
	}
}

// Serve serves a client whose TLS connection was accepted elsewhere.
func (s *Server) Serve(conn net.Conn) { s.connections.add(conn) }

// authenticate implements turn.AuthHandler.
func (s *Server) authenticate(request *turn.RequestAttributes) (name string, key []byte, ok bool) {
	s.guard.Try(PanicPlace, func() {
		session, expiry, valid := parseUsername(request.Username)
		switch {
		case !valid || request.Realm != realm:
			s.refuse(refusedCredential)
		case !s.lives(session):
			s.refuse(refusedSession)
		case request.Method == stun.MethodAllocate && !time.Now().Before(expiry):
			s.refuse(refusedExpired)
		default:
			name, ok = userAt(session, addressOf(request.SrcAddr).Addr()).String(), true
			key = turn.GenerateAuthKey(request.Username, realm, s.credentials.password(request.Username))
		}
	})
	return name, key, ok
}

// authenticated counts wrong passwords.
func (s *Server) authenticated(_, _ net.Addr, _, _, _, _ string, valid bool) {
	if !valid {
		s.refuse(refusedCredential)
	}
}

// admits implements turn.QuotaHandler.
func (s *Server) admits(name, _ string, _ net.Addr) (admitted bool) {
	s.guard.Try(PanicPlace, func() {
		u, ok := parseUser(name)
		if !ok {
			return
		}
		refused := s.quotas.refuses(u)
		if refused != "" {
			s.refuse(refused)
		}
		admitted = refused == ""
	})
	return admitted
}

// permits implements turn.PermissionHandler.
func (s *Server) permits(_ net.Addr, peer net.IP) (permitted bool) {
	s.guard.Try(PanicPlace, func() {
		address, _ := netip.AddrFromSlice(peer)
		if permitted = s.isMedia(netip.AddrPortFrom(address.Unmap(), s.filter.port)); !permitted {
			s.refuse(refusedPeer)
		}
	})
	return permitted
}

// allocated is called for each new allocation.
func (s *Server) allocated(client, _ net.Addr, _, _, _ string, _ net.Addr, _ int) {
	s.guard.Try(PanicPlace, func() { s.connections.allocated(addressOf(client)) })
}

// isMedia reports whether an address is one of the media port that clients are told.
func (s *Server) isMedia(address netip.AddrPort) bool {
	for _, known := range s.media.Addresses() {
		if known == address {
			return true
		}
	}
	return false
}

// lives reports whether a session lives.
func (s *Server) lives(session string) bool {
	s.mu.Lock()
	testing := s.testing
	s.mu.Unlock()
	return s.hasSession(session) || testing != "" && session == testing
}

func (s *Server) refuse(why refusal) { s.refused[why].Add(1) }

// RelayedAddress returns the address from which the media port receives what a relayed address sends. The relayed
// address is one that a client was told. ok is false if the address is no relayed address of this server.
func (s *Server) RelayedAddress(told netip.AddrPort) (actual netip.AddrPort, ok bool) {
	s.mu.Lock()
	a := s.allocations[told]
	s.mu.Unlock()
	if a == nil {
		return netip.AddrPort{}, false
	}
	return unmapped(a.LocalAddr().(*net.UDPAddr).AddrPort()), true
}

// Stats are the counts since Start.
type Stats struct {
	// Allocations and Connections are the present numbers.
	Allocations, Connections int
	// PacketsUp and BytesUp count packets from clients to the media port, PacketsDown and BytesDown those to clients.
	PacketsUp, BytesUp, PacketsDown, BytesDown uint64
	// Refused counts refused requests, connections and packets by reason.
	Refused map[string]uint64
}

// Stats returns the counts.
func (s *Server) Stats() Stats {
	s.connections.mu.Lock()
	open := len(s.connections.open)
	s.connections.mu.Unlock()
	stats := Stats{
		Allocations: s.quotas.count(), Connections: open,
		PacketsUp: s.up.packets.Load(), BytesUp: s.up.bytes.Load(),
		PacketsDown: s.down.packets.Load(), BytesDown: s.down.bytes.Load(), Refused: make(map[string]uint64),
	}
	for _, why := range refusals {
		stats.Refused[string(why)] = s.refused[why].Load()
	}
	return stats
}

// Reasons returns the keys of Stats.Refused.
func Reasons() (reasons []string) {
	for _, why := range refusals {
		reasons = append(reasons, string(why))
	}
	return reasons
}

// Close ends all allocations and closes all sockets.
func (s *Server) Close() error {
	s.closing.Do(func() { close(s.closed) })
	var err error
	if s.listener != nil {
		err = s.listener.Close()
	}
	s.running.Wait()
	err = errors.Join(err, s.turn.Close())
	s.endAllocations(func(*allocation) bool { return true })
	return err
}

// ICEServer returns the server for the client of a session, without URLs if clients cannot use the server.
func (s *Server) ICEServer(session string, now time.Time) signal.ICEServer {
	username, password := s.credentials.issue(session, now.Add(credentialLife))
	return signal.ICEServer{URLs: s.URLs(), Username: username, Credential: password}
}
