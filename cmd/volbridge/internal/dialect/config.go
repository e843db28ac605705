package dialect

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// Errors of sessions. They are wrapped with their cause.
var (
	// ErrRefused means that the server permanently refuses this client: because of the token, the client's number or
	// its announced tracks.
	ErrRefused = errors.New("refused by the server")
	// ErrEnded means that the server or the network ended the session.
	ErrEnded = errors.New("session ended")
	// ErrClosed means that Close ended the session.
	ErrClosed = errors.New("session is closed")
	// ErrTrack means that a packet has a tile, quality or kind that was not announced.
	ErrTrack = errors.New("no such track of this client")
)

// Config describes the server and the client of a session.
type Config struct {
	// URL is the address of the websocket without the query, as ws://host:port/websocket.
	URL string
	// Token is the access token, if the server requires one.
	Token string
	// TLS is used for wss. nil uses the system's certificates.
	TLS *tls.Config
	// Query is the client's announcement.
	Query vr2gather.Query
	// Sink receives the tracks and packets.
	Sink Sink
	// Log receives the log of the session.
	Log *slog.Logger
}

// Sink receives the media of a session.
type Sink interface {
	// Opened is called when the server opens a track, by the goroutine that then delivers the track's packets.
	Opened(track vr2gather.Track)
	// Packet receives the RTP payload of a packet. The payload is valid only during the call. Packet is called
	// concurrently by one goroutine per track.
	Packet(kind volumetric.Kind, payload []byte, now time.Time)
}

// address returns the URL of the websocket with the query.
func (c Config) address() (string, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return "", err
	}
	u.RawQuery = c.Query.String()
	return u.String(), nil
}

// loopback reports whether the server is on this host.
func (c Config) loopback() bool {
	u, err := url.Parse(c.URL)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
