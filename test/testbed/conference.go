package testbed

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/server"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Conference is a server on this host with clients in this process. Its methods are safe for concurrent use, but for
// Close, which comes last.
type Conference struct {
	// Server is nil where it runs as a process of its own.
	Server *server.Server
	url    string

	mu    sync.Mutex
	peers map[*Peer]struct{}
}

// Everything is a bit rate that everything fits, for links that are known not to be narrow.
const Everything volumetric.Bitrate = 1_000_000_000

// ConferenceConfig is a server's configuration for one process: loopback, ports that the system chooses, no tokens.
func ConferenceConfig() config.Config {
	c := config.DefaultConfig()
	c.Server.Dev = true
	c.Server.Listen = "127.0.0.1:0"
	c.Admin.Listen = "127.0.0.1:0"
	c.Media.Address = "127.0.0.1"
	c.Media.Port = 0
	return c
}

// NewConference starts a server. media replaces the server's UDP socket where it is not nil, for emulated networks.
func NewConference(c config.Config, media net.PacketConn, log *zap.Logger) (*Conference, error) {
	s, err := server.Start(server.Options{Config: c, Version: "lab", Log: log, Media: media})
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	return &Conference{Server: s, url: s.URL(), peers: make(map[*Peer]struct{})}, nil
}

// Attend has clients take part in what a server does that is there already.
func Attend(url string) *Conference { return &Conference{url: url, peers: make(map[*Peer]struct{})} }

// Part is how a peer takes part.
type Part struct {
	Room, Identity string
	// Token is for servers that ask for one.
	Token    string
	Loads    []Load
	Receive  bool
	Deadline time.Duration
	// MinUplink and QueueBudget are the client's, for hosts that stall.
	MinUplink   volumetric.Bitrate
	QueueBudget time.Duration
	// FrameBytes bounds received frames; 0 is the default.
	FrameBytes int
	// Feedback is the client's.
	Feedback client.Feedback
	// URL replaces the server's address where it is not empty, for clients that come through something.
	URL string
	// Media replaces the client's UDP socket where it is not nil.
	Media net.PacketConn
	Seed  uint64
	// Record says that Peer.Arrivals is wanted, which costs memory per frame.
	Record bool
}

// Join brings a peer into a room. Its loads are published from when it is connected.
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
		Publications: publications,
		Receive:      part.Receive,
		Deadline:     part.Deadline,
		MinUplink:    part.MinUplink,
		QueueBudget:  part.QueueBudget,
		FrameBytes:   part.FrameBytes,
		Feedback:     part.Feedback,
		PacketConn:   part.Media,
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

// present are the peers that have not left.
func (c *Conference) present() []*Peer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.peers))
}

// forget lets go of a peer that has left.
func (c *Conference) forget(p *Peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.peers, p)
}

// closeTimeout bounds how long a server may take to end.
const closeTimeout = 10 * time.Second

// Close ends all peers, and the server unless it was there already.
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
