// Package conference is volsfu itself as a transport: its server, and clients built on its SDK (package client). The
// SDK starts a session's goroutines. Package conference adds one goroutine that reads the session's frames and one that
// reads its events.
package conference

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/server"
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/lab/carriage"
)

// keyName names the key that signs the tokens of the lab's peers; Room is their room.
const (
	keyName = "lab"
	Room    = "lab"
)

// stopTimeout is the time limit for the server's last requests.
const stopTimeout = 5 * time.Second

// Settings are the settings of a server that differ from the defaults.
type Settings struct {
	// Address is the listen address for signalling; media uses a UDP port of the system's choice on the same host.
	Address string
	// Secret signs tokens; Suppression is the policy of the demand on publishers.
	Secret      string
	Suppression demand.Policy
	// Pacing is the pacing mode towards receivers, Controller the congestion control (congestion.Config).
	Pacing     pacing.Mode
	Controller string
}

// Serve runs a server until the context ends. listening is called with the server's address.
func Serve(ctx context.Context, s Settings, listening func(string)) (*carriage.Relayed, error) {
	host, _, err := net.SplitHostPort(s.Address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	c := config.DefaultConfig()
	c.Server.Listen, c.Admin.Listen = s.Address, ""
	c.Media.Port = 0
	if ip := net.ParseIP(host); ip != nil {
		c.Media.Address = ip.String()
	}
	c.Auth.Keys = []string{keyName + ":" + s.Secret}
	c.Rooms.Suppression.Policy, c.Forward.Pacing = s.Suppression, s.Pacing
	c.Forward.Congestion.Controller = s.Controller
	if err := errors.Join(c.Rooms.Validate(), c.Forward.Validate()); err != nil {
		return nil, err
	}
	running, err := server.Start(server.Options{Config: c, Version: "lab", Log: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	listening(strings.TrimPrefix(running.URL(), "ws://"))
	select {
	case <-ctx.Done():
	case err = <-running.Failed():
	}
	stats := running.Stats()
	stopping, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if stopErr := running.Stop(stopping); err == nil {
		err = stopErr
	}
	return &carriage.Relayed{
		FramesReceived: int64(stats.FramesReceived), FramesSent: int64(stats.FramesForwarded),
		FramesDropped: int64(stats.DroppedOverrun + stats.DroppedLate + stats.DroppedBudget + stats.DroppedExpired +
			stats.DroppedIncomplete + stats.DroppedBlocked + stats.DroppedUnbound),
		BytesReceived: int64(stats.Received.Media.Bytes + stats.Received.Parity.Bytes +
			stats.Received.Retransmission.Bytes),
		BytesSent: int64(stats.Sent.Media.Bytes + stats.Sent.Parity.Bytes + stats.Sent.Retransmission.Bytes),
	}, err
}

// token returns the token of a peer.
func token(secret, name string) (string, error) {
	ring, err := auth.NewKeyring(auth.Config{Keys: []string{keyName + ":" + secret}})
	if err != nil {
		return "", err
	}
	now := time.Now()
	return ring.Mint("", auth.Claims{Identity: name, Room: Room, Publish: true, Subscribe: true,
		Expires: now.Add(validity)}, now)
}

// validity is longer than any run.
const validity = 24 * time.Hour
