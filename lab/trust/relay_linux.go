package trust

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/volsfu/volsfu/internal/turnserver"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

const (
	// pings and shortPings are the numbers of packets whose round trip is measured, and pingBytes their size, that of a
	// full media packet.
	pings, shortPings = 5000, 200
	pingBytes         = 1200
	pingInterval      = time.Millisecond
	// pingPatience is the time after which a packet counts as lost.
	pingPatience = time.Second
)

// echo is a media port that returns every packet to its sender.
type echo struct {
	conn    *net.UDPConn
	running sync.WaitGroup
}

func newEcho() (*echo, error) {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	e := &echo{conn: conn}
	e.running.Go(func() {
		buffer := make([]byte, 2*pingBytes)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return
			}
			_, _ = conn.WriteToUDPAddrPort(buffer[:n], from)
		}
	})
	return e, nil
}

// LocalAddress and Addresses implement turnserver.Media.
func (e *echo) LocalAddress() netip.AddrPort { return e.conn.LocalAddr().(*net.UDPAddr).AddrPort() }
func (e *echo) Addresses() []netip.AddrPort  { return []netip.AddrPort{e.LocalAddress()} }

func (e *echo) close() {
	_ = e.conn.Close()
	e.running.Wait()
}

// pinged are the round trips of packets, and the processor time of this process for each.
type pinged struct {
	trips lab.Distribution
	lost  int
	cpu   time.Duration
}

// ping sends packets to an address, one after the other.
func ping(ctx context.Context, conn net.PacketConn, to net.Addr, count int) (p pinged, err error) {
	packet, buffer := make([]byte, pingBytes), make([]byte, 2*pingBytes)
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	before := processTime()
	for range count {
		select {
		case <-ctx.Done():
			return p, ctx.Err()
		case <-ticker.C:
		}
		began := time.Now()
		if _, err := conn.WriteTo(packet, to); err != nil {
			return p, err
		}
		if err := conn.SetReadDeadline(began.Add(pingPatience)); err != nil {
			return p, err
		}
		if _, _, err := conn.ReadFrom(buffer); err != nil {
			p.lost++
			continue
		}
		p.trips.Add(time.Since(began))
	}
	p.cpu = (processTime() - before) / time.Duration(count)
	return p, nil
}

// processTime returns the processor time of this process.
func processTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// relayCost measures the round trips of packets through the TURN server on loopback, beside those of packets that go
// directly to the same port.
func relayCost(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	count := pings
	if b.short {
		count = shortPings
	}
	media, err := newEcho()
	if err != nil {
		return nil, err
	}
	defer media.close()
	config := turnserver.DefaultConfig()
	config.Listen = "127.0.0.1:0"
	server, err := turnserver.Start(turnserver.Options{Config: config, Media: media,
		HasSession: func(string) bool { return true }, Failed: func(error) {}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	to := net.UDPAddrFromAddrPort(media.LocalAddress())
	plain, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	defer func() { _ = plain.Close() }()
	direct, err := ping(ctx, plain, to, count)
	if err != nil {
		return nil, err
	}
	own := server.ICEServer("session", time.Now())
	for i, name := range []string{"UDP", "TCP"} {
		var relayed pinged
		url := own.URLs[i]
		err := turnserver.Check(ctx, url, own.Username, own.Credential, nil, func(c net.PacketConn) (err error) {
			// The first packets make a permission and a channel.
			if _, err = ping(ctx, c, to, shortPings); err == nil {
				relayed, err = ping(ctx, c, to, count)
			}
			return err
		})
		if err != nil {
			return lines, fmt.Errorf("%s: %w", name, err)
		}
		added := relayed.trips.Percentile(0.99) - direct.trips.Percentile(0.99)
		lines = append(lines,
			claim.AtMost(name+": added to p99 of a round trip on loopback", lab.Milliseconds(added), "ms", 1),
			claim.Stated(name+": added to the median", lab.Microseconds(relayed.trips.Percentile(0.5)-
				direct.trips.Percentile(0.5)), "µs"),
			claim.Stated(name+": processor time of client and server per packet and answer, beyond direct ones",
				lab.Microseconds(relayed.cpu-direct.cpu), "µs"),
			claim.Exactly(name+": packets lost", int64(relayed.lost), fmt.Sprintf("of %d", count), 0))
	}
	return lines, nil
}
