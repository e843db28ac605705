package trust

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/messages"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/test/claim"
)

const (
	// dataDelay is the delay of each direction of each access link. The round trip between a client and the server is
	// dataRTT, and a message takes dataRTT from the sender to the receiver.
	dataDelay = 25 * time.Millisecond
	dataRTT   = 2 * dataDelay
	// dataLoss is the share of packets lost in each direction of each access link.
	dataLoss = 0.05
	// dataMargin is the time above the round trip that the target allows.
	dataMargin = 60 * time.Millisecond
	// dataInterval and dataCount are the time between two messages and their number.
	dataInterval = 50 * time.Millisecond
	dataCount    = 2400
	// dataShort is the number of messages of short measurements.
	dataShort = 100
)

// dataMessages measures the delays of data messages from one participant to another: reliable messages with message
// channels, without, and lossy messages.
func dataMessages(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	volsfu, err := b.program("volsfu")
	if err != nil {
		return nil, err
	}
	vollab, err := b.program("vollab")
	if err != nil {
		return nil, err
	}
	for _, c := range []struct {
		name  string
		flags []string
	}{
		{"reliable", nil},
		{"reliable without message channels", []string{"--message-channel=false"}},
		{"lossy", []string{"--lossy"}},
	} {
		b.progress.Say("  %s", c.name)
		count := dataCount
		if b.short {
			count = dataShort
		}
		r, err := exchange(ctx, volsfu, vollab, append(c.flags, "--count", strconv.Itoa(count)))
		if err != nil {
			return lines, fmt.Errorf("%s: %w", c.name, err)
		}
		limit := float64((dataRTT + dataMargin).Milliseconds())
		named := func(what string) string { return c.name + ": " + what }
		switch c.name {
		case "reliable":
			lines = append(lines, claim.AtMost(named("99th percentile of the delay"), r.P99, "ms", limit),
				claim.Exactly(named("messages received"), int64(r.Received), "", int64(count)),
				claim.Exactly(named("messages twice or out of order"), int64(r.Disordered), "", 0))
		case "lossy":
			lines = append(lines, claim.Stated(named("99th percentile of the delay"), r.P99, "ms"),
				claim.Stated(named("messages received"), 100*float64(r.Received)/float64(count), "%"))
		default:
			lines = append(lines, claim.Stated(named("99th percentile of the delay"), r.P99, "ms"),
				claim.Exactly(named("messages received"), int64(r.Received), "", int64(count)))
		}
		lines = append(lines, claim.Information(named("median of the delay"), r.Median, "ms"),
			claim.Information(named("longest delay"), r.Max, "ms"))
	}
	return lines, nil
}

// exchange sends messages from one namespace to another, by a server in a third, and returns the result of the
// receiver.
func exchange(ctx context.Context, volsfu, vollab string, flags []string) (r messages.Result, err error) {
	const serving = "server"
	c := netem.DefaultConfig()
	c.Delay, c.Loss = dataDelay, dataLoss
	link := topology.Duplex(c)
	network, err := topology.Start(ctx, topology.Star(serving,
		map[string]topology.Link{messages.Sender: link, messages.Receiver: link}))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, network.Close()) }()
	secret := rand.Text() + rand.Text()
	address := network.Address(serving).String()
	command := network.Command(ctx, serving, volsfu, "serve", "--listen", address+":0", "--admin-listen", "",
		"--media-address", address, "--media-port", "0", "--log-format", "json")
	command.Env = append(command.Env, "VOLSFU_AUTH_KEYS=lab:"+secret)
	server, err := lab.StartServerCommand(ctx, command)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	keys, err := auth.NewKeyring(auth.Config{Keys: []string{"lab:" + secret}})
	if err != nil {
		return r, err
	}
	start := func(identity string, more ...string) (*lab.Program, error) {
		now := time.Now()
		token, err := keys.Mint("", auth.Claims{Identity: identity, Room: messages.Room, Subscribe: true,
			Expires: now.Add(time.Hour)}, now)
		if err != nil {
			return nil, err
		}
		arguments := append([]string{"messages", "--server", server.URL(), "--token", token, "--interval",
			dataInterval.String()}, append(flags, more...)...)
		return lab.StartCommand("vollab messages", network.Command(ctx, identity, vollab, arguments...), nil)
	}
	receiver, err := start(messages.Receiver, "--receive")
	if err != nil {
		return r, err
	}
	sender, err := start(messages.Sender)
	if err != nil {
		return r, errors.Join(err, receiver.Stop())
	}
	if err := errors.Join(sender.Wait(ctx), receiver.Wait(ctx)); err != nil {
		return r, errors.Join(err, sender.Stop(), receiver.Stop())
	}
	return r, json.Unmarshal(receiver.Output(), &r)
}
