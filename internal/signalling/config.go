package signalling

import (
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/panics"
)

// ErrConfig is wrapped with the wrong key and the expected value.
var ErrConfig = errors.New("invalid signalling configuration")

// PanicPlaces are the places that this package names to Config.Guard.
var PanicPlaces = []string{placeOutbox}

// placeOutbox is the goroutine that writes to one websocket.
const placeOutbox = "outbox"

// Config limits the use of a websocket by its client.
type Config struct {
	// Guard confines a panic in a goroutine of one client to that client. If Guard is nil, a panic ends the program.
	Guard *panics.Guard `yaml:"-"`

	AllowedOrigins []string      `yaml:"allowed_origins" help:"origins of web pages that may connect, as https://host[:port]; * allows every one; clients that are no browsers send none"`
	JoinTimeout    time.Duration `yaml:"join_timeout" help:"how long a client may take from connecting to its join"`
	WriteTimeout   time.Duration `yaml:"write_timeout" help:"how long one message may take to be written"`
	PingInterval   time.Duration `yaml:"ping_interval" help:"interval of websocket pings; a client that is silent for three counts as gone"`
	MessageBytes   int           `yaml:"message_bytes" help:"largest message that is taken, in bytes"`
	// MessageRate: a viewpoint and the poses of three objects, each at 60 Hz, are 240/s. A receiver that changes 15
	// tiles of ten publishers at 1 Hz, each with its own message, sends 150/s.
	MessageRate  float64 `yaml:"message_rate" help:"messages per second that a client may send in the long run"`
	MessageBurst int     `yaml:"message_burst" help:"messages that a client may send at once"`
	ByteRate     float64 `yaml:"byte_rate" help:"bytes per second that a client may send in the long run"`
	ByteBurst    int     `yaml:"byte_burst" help:"bytes that a client may send at once; at least message_bytes"`
	// TokenWebsockets: a token without an identity may be shared by all clients, and after a restart of the server all
	// clients return within seconds.
	TokenWebsockets int     `yaml:"token_websockets" help:"websockets that may be open by one token"`
	TokenRate       float64 `yaml:"token_rate" help:"websockets per second that may be opened by one token in the long run, and as many joins"`
	TokenBurst      int     `yaml:"token_burst" help:"websockets that may be opened by one token at once"`
	// AddressWebsockets: a room holds 100 participants by default. The limit is more than twice as high, because all
	// participants may return before the server notices that their websockets broke.
	AddressWebsockets int      `yaml:"address_websockets" help:"websockets that may be open from one address (of IPv6, from one prefix of 64 bits), of this host any number; it is the proxy's where there is one that is not trusted"`
	AddressRate       float64  `yaml:"address_rate" help:"websockets per second that may be opened from one address in the long run, and requests for the list of rooms; and as many joins"`
	AddressBurst      int      `yaml:"address_burst" help:"websockets that may be opened from one address at once"`
	TrustedProxies    []string `yaml:"trusted_proxies" help:"addresses or prefixes of reverse proxies that say whom they have a request from; what others say of it is passed over"`
	ProxyHeader       string   `yaml:"proxy_header" help:"header in which trusted proxies say so, X-Forwarded-For or Forwarded: the one that they set or append to themselves"`
	// Backlog: a join to a full room brings a few messages per participant at once.
	Backlog int `yaml:"backlog" help:"messages that wait for a client that does not read before it is disconnected"`
}

// DefaultConfig returns limits for rooms of tens of participants.
func DefaultConfig() Config {
	return Config{
		JoinTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		PingInterval:      5 * time.Second,
		MessageBytes:      2 << 20,
		MessageRate:       400,
		MessageBurst:      1000,
		ByteRate:          4 << 20,
		ByteBurst:         16 << 20,
		TokenWebsockets:   1000,
		TokenRate:         20,
		TokenBurst:        1000,
		AddressWebsockets: 256,
		AddressRate:       50,
		AddressBurst:      200,
		ProxyHeader:       headerXForwardedFor,
		Backlog:           1024,
	}
}

// Validate returns an error that names the first wrong key.
func (c Config) Validate() error {
	switch {
	case c.JoinTimeout <= 0 || c.WriteTimeout <= 0 || c.PingInterval <= 0:
		return fmt.Errorf("%w: join_timeout, write_timeout and ping_interval: expected durations over 0", ErrConfig)
	case c.MessageBytes < 1024 || c.ByteBurst < c.MessageBytes:
		return fmt.Errorf("%w: message_bytes %d, byte_burst %d: expected at least 1024, and a burst that holds one message", ErrConfig, c.MessageBytes, c.ByteBurst)
	case c.TokenWebsockets < 1 || !(c.TokenRate > 0) || c.TokenBurst < 1:
		return fmt.Errorf("%w: token_websockets, token_rate and token_burst: expected numbers over 0", ErrConfig)
	case c.AddressWebsockets < 1 || !(c.AddressRate > 0) || c.AddressBurst < 1:
		return fmt.Errorf("%w: address_websockets, address_rate and address_burst: expected numbers over 0", ErrConfig)
	case c.MessageRate <= 0 || c.MessageBurst < 1 || c.ByteRate <= 0 || c.Backlog < 1:
		return fmt.Errorf("%w: message_rate, message_burst, byte_rate and backlog: expected numbers over 0", ErrConfig)
	}
	_, err := newSources(c.TrustedProxies, c.ProxyHeader)
	return err
}

// tokenLimits returns the limits of one token.
func (c Config) tokenLimits() quotaLimits {
	return quotaLimits{
		open: c.TokenWebsockets, perSecond: c.TokenRate, burst: c.TokenBurst,
		what: "websockets", of: "by this token", openKey: "signalling.token_websockets",
		rateKeys: "signalling.token_rate, signalling.token_burst",
	}
}

// addressLimits returns the limits of one address.
func (c Config) addressLimits() quotaLimits {
	return quotaLimits{
		open: c.AddressWebsockets, perSecond: c.AddressRate, burst: c.AddressBurst,
		what: "websockets", of: "from this address", openKey: "signalling.address_websockets",
		rateKeys: "signalling.address_rate, signalling.address_burst",
	}
}
