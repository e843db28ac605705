package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/cluster/certificate"
	"github.com/volsfu/volsfu/internal/cluster/entry"
	"github.com/volsfu/volsfu/internal/cluster/member"
	"github.com/volsfu/volsfu/internal/cluster/ticket"
	"github.com/volsfu/volsfu/internal/fabric"
	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
)

// openCluster connects to the other nodes, if the server is a node of a cluster.
func (s *startup) openCluster() error {
	c := s.config.Cluster
	if c.URL == "" {
		return nil
	}
	own, err := certificate.Load(c.Directory)
	if err != nil {
		return err
	}
	if s.sealer, err = ticket.NewSealer(own.Secret()); err != nil {
		return err
	}
	reload := func() error {
		if err := own.Reload(); err != nil {
			return err
		}
		return s.sealer.SetSecret(own.Secret())
	}
	if err := s.files.add("certificate of the node", own.Files(), reload); err != nil {
		return err
	}
	s.own, s.nodes = own, http.NewServeMux()
	host := s.hostForNodes()
	address := listenAddress(host, s.config.Server.Dev)
	s.member, err = member.Open(c, member.Options{
		Certificate: own, Address: netip.AddrPortFrom(address, uint16(c.Port)), Host: host, Guard: s.guard,
		Loopback: s.config.Server.Dev, ResumeGrace: s.config.Rooms.ResumeGrace,
		Rooms: s.config.Rooms.Rooms, Log: s.log,
	})
	if err != nil {
		return err
	}
	s.config.Rooms.Cluster = s.member
	listen := net.JoinHostPort(address.String(), strconv.Itoa(c.Port))
	if s.nodeListener, err = net.Listen("tcp", listen); err != nil {
		return fmt.Errorf("listen for other nodes: %w", err)
	}
	return nil
}

// listenAddress returns the address at which this node listens for other nodes. host is the address that they use.
func listenAddress(host string, dev bool) netip.Addr {
	address, err := netip.ParseAddr(host)
	switch {
	case dev:
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case err == nil && address.Is6() && !address.Is4In6():
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

// enterByCluster lets the cluster decide where the clients of signalling join.
func (s *startup) enterByCluster(handler *signalling.Server) {
	if s.member == nil {
		return
	}
	s.signalling = handler
	s.entry = entry.New(entry.Options{
		View: s.member, Rooms: s.node, Sealer: s.sealer, ResumeGrace: s.config.Rooms.ResumeGrace,
		Dial: nodeDialer{s.member, s.own}.dial, Log: s.log,
	})
	handler.SetCluster(s.entry)
	s.nodes.Handle(signal.Path, handler.Proxied())
}

// joinCluster begins to share rooms with the other nodes.
func (s *startup) joinCluster() error {
	if s.member == nil {
		return nil
	}
	s.serveNodes()
	var description cluster.Description
	if s.entry != nil {
		_, port, _ := net.SplitHostPort(s.nodeListener.Addr().String())
		description.URL, description.Proxy = s.urlForClients(s.own.Name), net.JoinHostPort(s.hostForNodes(), port)
	}
	if err := s.member.Serve(s.node, s.engine, description); err != nil {
		return err
	}
	if s.entry != nil {
		s.entry.Serve(s.signalling)
	}
	return nil
}

// serveNodes serves the requests of other nodes. Peers without a certificate of the cluster are refused and counted by
// certificate.Node. The number of websockets is limited by signalling.
func (s *startup) serveNodes() {
	s.forNodes = newHTTPServer(guarded(s.guard, placeRequest, s.nodes))
	s.forNodes.ErrorLog = s.requests.ForHTTP()
	limit := newConnections(s.config.Server.AddressConnections, func(netip.Addr) bool { return false })
	s.forNodes.ConnState = limit.changed
	go func() {
		err := s.forNodes.Serve(tls.NewListener(s.nodeListener, s.own.TLS()))
		if !errors.Is(err, http.ErrServerClosed) {
			s.fail(fmt.Errorf("serve other nodes: %w", err))
		}
	}()
}

// closeCluster ends the connections to other nodes. The rooms have ended before.
func (s *Server) closeCluster() error {
	if s.member == nil {
		return nil
	}
	if s.entry != nil {
		s.entry.Close()
		s.signalling.EndProxies(signal.CodeDraining)
	}
	s.member.Close()
	if s.toNodes != nil {
		s.toNodes.CloseIdleConnections()
	}
	switch {
	case s.forNodes != nil:
		return s.forNodes.Close()
	case s.nodeListener != nil:
		return s.nodeListener.Close()
	}
	return nil
}

// urlForClients returns the address of this server for the clients of other nodes: that of the configuration, or one
// with the name in the certificate. The address is empty if the certificate has no name for it: other nodes then proxy
// the websockets of their clients. node is the name of this node.
func (s *Server) urlForClients(node string) string {
	if configured, err := s.config.Server.ParsePublicURL(); err == nil && configured != "" {
		return configured
	}
	_, port, _ := net.SplitHostPort(s.listener.Addr().String())
	if name := s.certificateName(node); name != "" {
		return "wss://" + net.JoinHostPort(name, port)
	}
	if s.tls != nil {
		s.log.Warn("clients of other nodes are proxied to this node, because its certificate has no name; " +
			"server.public_url names its address")
		return ""
	}
	host, _, _ := net.SplitHostPort(s.config.Server.Listen)
	if host == "" || host == "0.0.0.0" || host == "::" {
		if host = s.hostForNodes(); len(s.config.Media.PublicIPs) > 0 {
			host = s.config.Media.PublicIPs[0]
		}
	}
	return "ws://" + net.JoinHostPort(host, port)
}

// hostForNodes returns the address at which other nodes reach this host: the address from which this host reaches the
// first seed or NATS server. The names of seeds may not exist yet, as of pods that start; then it is the public address
// if this host has it, else the address of the default route. No packet is sent.
func (s *Server) hostForNodes() string {
	if s.config.Server.Dev {
		return "127.0.0.1"
	}
	var targets []string
	if address, err := fabric.Parse(s.config.Cluster.URL); err == nil {
		targets = address.Reached()
	}
	for _, public := range s.config.Media.PublicIPs {
		// The listeners for nodes have no IPv6.
		if a, err := netip.ParseAddr(public); err == nil && a.Is4() {
			targets = append(targets, net.JoinHostPort(public, "9"))
		}
	}
	// TEST-NET-1 (RFC 5737) has the default route on every host.
	targets = append(targets, "192.0.2.1:9")
	for _, target := range targets {
		c, err := net.Dial("udp", target)
		if err != nil {
			s.log.Debug("no route to a node", zap.String("address", target), zap.Error(err))
			continue
		}
		local, err := netip.ParseAddrPort(c.LocalAddr().String())
		_ = c.Close()
		if err == nil {
			return local.Addr().WithZone("").String()
		}
	}
	return "127.0.0.1"
}

// RoutePort returns the port of this node's embedded NATS server for other nodes, 0 if there is none.
func (s *Server) RoutePort() int {
	if s.member == nil {
		return 0
	}
	return s.member.RoutePort()
}
