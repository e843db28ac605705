package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/pkg/client"
)

// room says where to go and as whom.
type room struct {
	server, name, identity, token string
	clock                         string
	// media replaces the UDP socket where it is not nil, for emulated networks. No flag sets it.
	media net.PacketConn
}

func (r *room) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.server, "server", "ws://127.0.0.1:8080", "the server, ws://HOST:PORT or wss://HOST:PORT")
	f.StringVar(&r.name, "room", "", "the room; may be left out where the token names it")
	f.StringVar(&r.identity, "identity", "", "this participant's name; may be left out where the token names it")
	f.StringVar(&r.token, "token", "", "access token; a server in development mode needs none")
	f.StringVar(&r.clock, "clock", "", "where this host has its time from: estimated by messages to the server, system for the system's clock, or ptp where the precision time protocol "+
		"keeps it; without, system where the server is on this host, else estimated")
}

// joinTimeout bounds how long the server may take to let us in.
const joinTimeout = 15 * time.Second

var errNotTold = errors.New("expected --room and --identity, or a --token that names them")

// check tells what is missing.
func (r *room) check() error {
	if r.token == "" && (r.name == "" || r.identity == "") {
		return errNotTold
	}
	return nil
}

// join enters the room.
func (r *room) join(ctx context.Context, config client.Config) (*client.Session, error) {
	config.URL, config.Room, config.Identity, config.Token = r.server, r.name, r.identity, r.token
	config.PacketConn = r.media
	var err error
	if config.ClockSource, config.ClockShift, err = clockSettings(r.clock); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	session, err := client.Join(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.server, err)
	}
	return session, nil
}

// limited ends the context after so many seconds; 0 is no limit.
func limited(ctx context.Context, seconds float64) (context.Context, context.CancelFunc) {
	if seconds <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second)))
}
