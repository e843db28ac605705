package dialect

import (
	"errors"
	"log/slog"
	"net"
	"net/url"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// Errors of sessions. They are wrapped with what was acted on.
var (
	// ErrRefused says that the server does not let this client in, however often it asks: the token, the client's
	// number or what it announces does not do.
	ErrRefused = errors.New("refused by the server")
	// ErrEnded says that the server, or the network, has ended the session.
	ErrEnded = errors.New("session ended")
	// ErrClosed says that Close has ended it.
	ErrClosed = errors.New("session is closed")
	// ErrTrack says that a packet is of no tile, quality or kind that was announced.
	ErrTrack = errors.New("no such track of this client")
)

// Config says where to go, as whom, and what for.
type Config struct {
	// URL is the address of the websocket, without the query, as ws://host:port/websocket.
	URL string
	// Token is the access token, where the server asks for one.
	Token string
	// Query is how the client announces itself.
	Query vr2gather.Query
	// Sink takes what comes.
	Sink Sink
	// Log takes what the session has to say.
	Log *slog.Logger
}

// Sink takes what a session receives.
type Sink interface {
	// Opened says that the server sends a track. It is called by the goroutine that then hands over the track's
	// packets.
	Opened(track vr2gather.Track)
	// Packet takes the RTP payload of a packet, which is the sink's only until it returns. It is called by as many
	// goroutines as there are tracks.
	Packet(kind volumetric.Kind, payload []byte, now time.Time)
}

// address is where the websocket is opened.
func (c Config) address() (string, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return "", err
	}
	u.RawQuery = c.Query.String()
	return u.String(), nil
}

// loopback tells whether the server is on this host.
func (c Config) loopback() bool {
	u, err := url.Parse(c.URL)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
