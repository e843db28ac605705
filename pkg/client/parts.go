package client

import (
	"sync/atomic"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/client/internal/frametrace"
	"github.com/volsfu/volsfu/pkg/client/internal/lifetime"
	"github.com/volsfu/volsfu/pkg/client/internal/messages"
	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
)

// parts are the parts of a session, which the program's calls (Session) and the goroutine of control share. Each part
// is safe for concurrent use.
type parts struct {
	*room
	*frameTimes
	statistics
	config   Config
	lifetime *lifetime.Lifetime
	// endpoint is set before the join.
	endpoint *transport.Endpoint
	path     *path
	data     *messages.Flow
	inbox    inbox
	events   eventQueue
	updates  *signalling.Updates
	// requests are the requests without a reply, publishers are this client's own.
	requests   *signalling.Requests
	publishers *publishers
	// requested is the state that this client has requested.
	requested *signalling.Requested
	// leaving is set once Close was called.
	leaving atomic.Bool
}

// newParts returns the parts of a session that has not joined. The configuration must be valid.
func newParts(config Config) *parts {
	p := &parts{
		room:      new(room),
		config:    config,
		lifetime:  lifetime.New(config.Log),
		path:      new(path),
		inbox:     make(inbox, dataBacklog),
		events:    make(eventQueue, eventBacklog),
		updates:   signalling.NewUpdates(),
		requested: new(signalling.Requested),
	}
	p.data = messages.NewFlow(p.inbox)
	p.config.panicked = p.lifetime.Panicked
	p.requests = signalling.NewRequests(p.lifetime.Context())
	tracing := frametrace.New(config.FrameTimes && config.Receive, config.FrameTimes)
	p.path.present.Store(newMedia(environment{
		config: p.config, lifetime: p.lifetime, events: p.events, updates: p.updates, data: p.data, tracing: tracing,
	}))
	p.statistics = statistics{path: p.path}
	p.frameTimes = &frameTimes{config: p.config, requests: p.requests, path: p.path, tracing: tracing}
	p.publishers = &publishers{config: p.config, path: p.path, events: p.events, updates: p.updates}
	return p
}

// newPeer makes a peer connection to a server that the client has joined.
func (p *parts) newPeer(sink transport.Sink, joined *signal.Joined) (*transport.Peer, error) {
	var servers []transport.ICEServer
	for _, s := range joined.ICEServers {
		servers = append(servers, transport.ICEServer{URLs: s.URLs, Username: s.Username, Credential: s.Credential})
	}
	peer, err := p.endpoint.NewPeer(sink, servers...)
	if err != nil {
		return nil, err
	}
	if p.config.Feedback != FeedbackTransportCC {
		peer.PreferReportsByStream()
	}
	if joined.Multipath {
		peer.UseAllPairs()
	}
	if p.config.MessageChannel {
		p.data.Attach(peer.AddCopies(signal.MessageChannel))
	}
	return peer, nil
}
