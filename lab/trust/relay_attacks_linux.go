package trust

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/turnserver"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/e2e/puppet"
	"github.com/volsfu/volsfu/test/testbed"
)

const (
	// attempts and shortAttempts are the numbers of allocations that one client tries to make, with attackers at once.
	attempts, shortAttempts = 10_000, 200
	attackers               = 16
	// permitted is the number of allocations that a session may have.
	permitted = 12
	// attemptTime bounds one attempt, which the server answers at once.
	attemptTime = 5 * time.Second
	// settledFrames is the number of frames after which the rates have settled, and for which the effect of the attacks
	// is observed.
	settledFrames = 60
	// strays is the number of packets to a foreign address.
	strays = 50
)

// relayAttacks uses the TURN server against a foreign address, with credentials of an ended session, and for many
// allocations, while a participant receives frames of another one.
func relayAttacks(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	count := attempts
	if b.short {
		count = shortAttempts
	}
	config := testbed.ConferenceConfig()
	config.TURN.Listen = "127.0.0.1:0"
	c, err := testbed.NewConference(config, nil, zap.NewNop())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	load := testbed.Load{Name: "body", Tiles: 1, Qualities: 1, FrameBytes: 5000, Rate: 30}
	watcher, err := c.Join(ctx, testbed.Part{Room: "room", Identity: "watcher", Receive: true, Record: true})
	if err != nil {
		return nil, err
	}
	_, err = c.Join(ctx, testbed.Part{Room: "room", Identity: "publisher", Loads: []testbed.Load{load}})
	if err != nil {
		return nil, err
	}
	tile := volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: "publisher", Publication: "body"}}
	if err := until(ctx, func() bool { return watcher.Tile(tile).Frames > settledFrames }); err != nil {
		return nil, err
	}
	before := len(watcher.Arrivals())
	intruder, err := puppet.Dial(puppet.Config{URL: c.Server.URL()})
	if err != nil {
		return nil, err
	}
	defer intruder.Close()
	joined, err := intruder.Join(&signal.Join{Version: signal.Version, Room: "elsewhere", Identity: "intruder"})
	if err != nil {
		return nil, err
	}
	if len(joined.ICEServers) == 0 {
		return nil, errors.New("the server has told the client of no TURN server")
	}
	own := joined.ICEServers[0]
	refused := func(reason string) int64 {
		n, err := c.Metric(ctx, `volsfu_turn_refused_total{reason="`+reason+`"}`)
		if err != nil {
			return 0
		}
		return int64(n)
	}
	arrived, err := straying(ctx, own)
	if err != nil {
		return nil, err
	}
	lines = append(lines,
		claim.Exactly("packets that reached a foreign address", arrived, fmt.Sprintf("of %d", strays), 0),
		claim.AtLeast("refusals of a foreign address, counted", float64(refused("peer")), "", 1))
	made := allocating(ctx, own, count)
	lines = append(lines,
		claim.AtMost(fmt.Sprintf("allocations made by %d attempts of one session", count), float64(made), "",
			permitted),
		claim.AtLeast("refusals of allocations, counted", float64(refused("quota")), "", float64(int64(count)-made)))
	if _, err := intruder.Request(&signal.Leave{}); err != nil {
		return lines, err
	}
	if err := until(ctx, func() bool {
		return turnserver.Check(ctx, own.URLs[0], own.Username, own.Credential, nil, accept) != nil
	}); err != nil {
		lines = append(lines, claim.Fail("replayed credential of an ended session", err.Error()))
	} else {
		lines = append(lines, claim.AtLeast("replayed credentials of an ended session, refused and counted",
			float64(refused("session")), "", 1))
	}
	after := watcher.Tile(tile).Frames
	if err := until(ctx, func() bool { return watcher.Tile(tile).Frames > after+settledFrames }); err != nil {
		return lines, err
	}
	lost, sent := gaps(watcher.Arrivals()[before:])
	return append(lines, claim.Exactly("frames of others lost", lost, fmt.Sprintf("of %d", sent), 0)), ctx.Err()
}

// gaps returns the number of frames that are missing between the first and the last arrival, and of all between.
func gaps(arrivals []testbed.Arrival) (lost, all int64) {
	if len(arrivals) == 0 {
		return 0, 0
	}
	first, last := arrivals[0].Number, arrivals[0].Number
	for _, a := range arrivals {
		first, last = min(first, a.Number), max(last, a.Number)
	}
	all = last - first + 1
	return all - int64(len(arrivals)), all
}

// accept is a use of a relayed address without packets.
func accept(net.PacketConn) error { return nil }

// until waits for a condition.
func until(ctx context.Context, condition func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}

// straying sends packets through the server to a foreign address, and returns the number that arrived.
func straying(ctx context.Context, server signal.ICEServer) (arrived int64, err error) {
	foreign, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return 0, err
	}
	var count atomic.Int64
	var running sync.WaitGroup
	running.Go(func() {
		buffer := make([]byte, pingBytes)
		for {
			if _, _, err := foreign.ReadFromUDP(buffer); err != nil {
				return
			}
			count.Add(1)
		}
	})
	err = turnserver.Check(ctx, server.URLs[0], server.Username, server.Credential, nil, func(c net.PacketConn) error {
		for range strays {
			// The server refuses, and the client may learn of it.
			_, _ = c.WriteTo([]byte("stray"), foreign.LocalAddr())
		}
		return nil
	})
	_ = foreign.Close()
	running.Wait()
	return count.Load(), err
}

// allocating tries to make allocations that are kept, and returns how many were made.
func allocating(ctx context.Context, server signal.ICEServer, count int) (made int64) {
	var group sync.WaitGroup
	var kept, ended atomic.Int64
	tries := make(chan struct{})
	release, cancel := context.WithCancel(ctx)
	defer group.Wait()
	defer cancel()
	hold := func(net.PacketConn) error {
		kept.Add(1)
		<-release.Done()
		return nil
	}
	for n := range attackers + permitted {
		url := server.URLs[n%len(server.URLs)]
		if !strings.HasPrefix(url, "turn:") {
			continue
		}
		group.Go(func() {
			for range tries {
				try, end := context.WithTimeout(ctx, attemptTime)
				_ = turnserver.Check(try, url, server.Username, server.Credential, nil, hold)
				end()
				ended.Add(1)
			}
		})
	}
	for range count {
		select {
		case tries <- struct{}{}:
		case <-ctx.Done():
		}
	}
	close(tries)
	// Attempts that the server has not answered in time end, too.
	_ = until(ctx, func() bool { return kept.Load()+ended.Load() >= int64(count) })
	return kept.Load()
}
