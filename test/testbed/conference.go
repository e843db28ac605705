package testbed

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/server"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Conference is a server on this host with clients in this process. The methods are safe for concurrent use, except
// Close, which must be the last call.
type Conference struct {
	// Server is nil if the server runs in another process.
	Server *server.Server
	url    string

	mu    sync.Mutex
	peers map[*Peer]struct{}
}

// Everything is a bit rate above that of any test, for links that are known to be wide.
const Everything volumetric.Bitrate = 1_000_000_000

// ConferenceConfig returns the configuration of a server in one process: loopback, ports that the system chooses, no
// tokens.
func ConferenceConfig() config.Config {
	c := config.DefaultConfig()
	c.Server.Dev = true
	c.Server.Listen = "127.0.0.1:0"
	c.Admin.Listen = "127.0.0.1:0"
	c.Media.Address = "127.0.0.1"
	c.Media.Port = 0
	return c
}

// Unhurried lets a server estimate every link as wide and drop no late data. A machine that stalls looks like a
// congested link and delays frames, which tests that count frames must not see.
func Unhurried(c *config.Config) {
	c.Forward.Congestion.Min, c.Forward.Congestion.Start = Everything, Everything
	c.Cluster.Limits = congestion.Limits{Min: Everything, Start: Everything}
	c.Forward.MaxLag = 5 * signal.MaxDeadline
	c.Forward.CacheAge = 5 * signal.MaxDeadline
	c.Forward.LateWindow = 5 * signal.MaxDeadline
	c.Forward.QueueBudget = signal.MaxDeadline
	c.Forward.NACK.Deadline, c.Forward.NACK.LongDeadline = signal.MaxDeadline, signal.MaxDeadline
}

// RequireToken changes a configuration so that clients need a token, and returns a token for each of them, in any room.
// The token is valid for an hour.
func RequireToken(c *config.Config) (token string, err error) {
	c.Server.Dev, c.Auth.Keys = false, []string{"k:0123456789abcdef0123456789abcdef"}
	ring, err := auth.NewKeyring(c.Auth)
	if err != nil {
		return "", err
	}
	now := time.Now()
	return ring.Mint("", auth.Claims{Publish: true, Subscribe: true, Expires: now.Add(time.Hour)}, now)
}

// NewConference starts a server. If not nil, media replaces the server's UDP socket, for emulated networks.
func NewConference(c config.Config, media net.PacketConn, log *zap.Logger) (*Conference, error) {
	s, err := server.Start(server.Options{Config: c, Version: "lab", Log: log, Media: media})
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	return &Conference{Server: s, url: s.URL(), peers: make(map[*Peer]struct{})}, nil
}

// Attend returns a Conference of a server that runs already.
func Attend(url string) *Conference { return &Conference{url: url, peers: make(map[*Peer]struct{})} }

// Part is the configuration of a peer.
type Part struct {
	Room, Identity string
	// Token is the access token, if the server requires one. TLS is the client's, for wss.
	Token    string
	TLS      *tls.Config
	Loads    []Load
	Receive  bool
	Deadline time.Duration
	// MinUplink and QueueBudget are the client's, for hosts that stall.
	MinUplink   volumetric.Bitrate
	QueueBudget time.Duration
	// FrameBytes bounds a received frame, in bytes. 0 is the client's default.
	FrameBytes int
	// Feedback is the client's.
	Feedback client.Feedback
	// Controller and ClockSource are the client's.
	Controller  client.Controller
	ClockSource frametimes.Source
	// URL replaces the server's address unless empty, for clients behind a relay.
	URL string
	// Media replaces the client's UDP socket unless nil. TCP is set for a client without a UDP socket.
	Media net.PacketConn
	TCP   bool
	// Interfaces are the client's network interfaces for media.
	Interfaces []string
	Seed       uint64
	// Record enables Peer.Arrivals, which takes memory for each frame.
	Record bool
	// Admit reports whether the next frames of a load may be captured, for tests that must not send more than a busy
	// machine can process. nil admits all frames.
	Admit func(*Peer, Load) bool
}

// Join adds a peer to a room. The peer publishes the loads once connected.
func (c *Conference) Join(ctx context.Context, part Part) (*Peer, error) {
	var publications []volumetric.Publication
	for _, load := range part.Loads {
		publications = append(publications, load.Publication())
	}
	url := c.url
	if part.URL != "" {
		url = part.URL
	}
	opened := time.Now()
	session, err := client.Join(ctx, client.Config{
		URL:          url,
		Room:         part.Room,
		Identity:     part.Identity,
		Token:        part.Token,
		TLS:          part.TLS,
		Publications: publications,
		Receive:      part.Receive,
		Deadline:     part.Deadline,
		MinUplink:    part.MinUplink,
		QueueBudget:  part.QueueBudget,
		FrameBytes:   part.FrameBytes,
		Feedback:     part.Feedback,
		Controller:   part.Controller,
		ClockSource:  part.ClockSource,
		PacketConn:   part.Media,
		TCP:          part.TCP,
		Interfaces:   part.Interfaces,
	})
	if err != nil {
		return nil, fmt.Errorf("join as %s: %w", part.Identity, err)
	}
	publishing, stop := context.WithCancel(context.Background())
	p := &Peer{
		Session:    session,
		Opened:     opened,
		Connected:  make(chan struct{}),
		conference: c,
		stop:       stop,
		tiles:      make(map[volumetric.TileRef]*Reception),
		events:     make(map[string]int),
		record:     part.Record,
		admit:      part.Admit,
		published:  make(map[string]int64),
	}
	p.receiving.Go(p.receive)
	for _, load := range part.Loads {
		p.publishing.Go(func() { p.publish(publishing, load, part.Seed) })
	}
	c.mu.Lock()
	c.peers[p] = struct{}{}
	c.mu.Unlock()
	return p, nil
}

// present returns the peers that have not left.
func (c *Conference) present() []*Peer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.peers))
}

// forget removes a peer that has left.
func (c *Conference) forget(p *Peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.peers, p)
}

// closeTimeout bounds the time in which a server ends.
const closeTimeout = 10 * time.Second

// Close ends all peers, and the server if started by NewConference.
func (c *Conference) Close() {
	for _, p := range c.present() {
		p.Leave()
	}
	if c.Server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = c.Server.Stop(ctx)
}
