package signalling

import (
	"errors"
	"fmt"
	"time"
)

// ErrConfig is wrapped with the key that is wrong and what was expected.
var ErrConfig = errors.New("invalid signalling configuration")

// Config limits what a client may do on its websocket.
type Config struct {
	AllowedOrigins []string      `yaml:"allowed_origins" help:"origins of web pages that may connect, as https://host[:port]; * allows every one; clients that are no browsers send none"`
	JoinTimeout    time.Duration `yaml:"join_timeout" help:"how long a client may take from connecting to its join"`
	WriteTimeout   time.Duration `yaml:"write_timeout" help:"how long one message may take to be written"`
	PingInterval   time.Duration `yaml:"ping_interval" help:"interval of websocket pings; a client that is silent for three counts as gone"`
	MessageBytes   int           `yaml:"message_bytes" help:"largest message that is taken, in bytes"`
	// MessageRate: a viewpoint and the poses of three objects, each at 60 Hz, are 240/s. A receiver that changes 15 tiles of ten publishers each at 1 Hz
	// sends 150/s when it sends each by itself.
	MessageRate  float64 `yaml:"message_rate" help:"messages per second that a client may send in the long run"`
	MessageBurst int     `yaml:"message_burst" help:"messages that a client may send at once"`
	ByteRate     float64 `yaml:"byte_rate" help:"bytes per second that a client may send in the long run"`
	ByteBurst    int     `yaml:"byte_burst" help:"bytes that a client may send at once; at least message_bytes"`
	// TokenWebsockets: a token that names nobody may be everybody's, and all come again within seconds when the server has been restarted.
	TokenWebsockets int     `yaml:"token_websockets" help:"websockets that may be open by one token"`
	TokenRate       float64 `yaml:"token_rate" help:"websockets per second that may be opened by one token in the long run"`
	TokenBurst      int     `yaml:"token_burst" help:"websockets that may be opened by one token at once"`
	// Backlog: joining a full room brings a few messages per participant at once.
	Backlog int `yaml:"backlog" help:"messages that wait for a client that does not read before it is disconnected"`
}

// DefaultConfig suits rooms of tens of participants.
func DefaultConfig() Config {
	return Config{
		JoinTimeout:     10 * time.Second,
		WriteTimeout:    10 * time.Second,
		PingInterval:    5 * time.Second,
		MessageBytes:    2 << 20,
		MessageRate:     400,
		MessageBurst:    1000,
		ByteRate:        4 << 20,
		ByteBurst:       16 << 20,
		TokenWebsockets: 1000,
		TokenRate:       20,
		TokenBurst:      1000,
		Backlog:         1024,
	}
}

// Validate reports the first key that is wrong.
func (c Config) Validate() error {
	switch {
	case c.JoinTimeout <= 0 || c.WriteTimeout <= 0 || c.PingInterval <= 0:
		return fmt.Errorf("%w: join_timeout, write_timeout and ping_interval: expected durations over 0", ErrConfig)
	case c.MessageBytes < 1024 || c.ByteBurst < c.MessageBytes:
		return fmt.Errorf("%w: message_bytes %d, byte_burst %d: expected at least 1024, and a burst that holds one message", ErrConfig, c.MessageBytes, c.ByteBurst)
	case c.TokenWebsockets < 1 || !(c.TokenRate > 0) || c.TokenBurst < 1:
		return fmt.Errorf("%w: token_websockets, token_rate and token_burst: expected numbers over 0", ErrConfig)
	case c.MessageRate <= 0 || c.MessageBurst < 1 || c.ByteRate <= 0 || c.Backlog < 1:
		return fmt.Errorf("%w: message_rate, message_burst, byte_rate and backlog: expected numbers over 0", ErrConfig)
	}
	return nil
}
