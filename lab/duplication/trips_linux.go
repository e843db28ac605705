package duplication

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/traffic"
)

const (
	// tripCount is the number of round trips of each way to send.
	tripCount = 60_000
	// tripParts is the number of parts of the measurement, whose medians give the error of the median.
	tripParts = 20
	// tripBytes is the payload of a datagram, that of a packet of media.
	tripBytes = 1200
)

// trips measures the round trip of a datagram between two hosts over veth pairs: without edges, with edges on one path,
// and with edges on three paths. The ways take turns, trip by trip, so that a busy machine delays all of them alike.
func trips(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	plain, err := newWires(ctx, 1, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plain.Close()) }()
	copied, err := newWires(ctx, paths, 2)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	pair, err := b.startEdges(ctx, copied, onOne, onAll)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pair.Close()) }()
	ways := []struct {
		name string
		ends *traffic.Ends
		most float64 // µs
	}{{"without edges", plain.ends(0), 0}, {"one path", copied.ends(0), 5}, {"three paths", copied.ends(1), 15}}
	pings := make([]*ping, len(ways))
	for i, w := range ways {
		if pings[i], err = newPing(w.ends); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, pings[i].close()) }()
	}
	count := tripCount
	if b.short {
		count = 100 * tripParts
	}
	var measured []*measuredTrips
	if err := whileCopying(ctx, pair, func() (err error) {
		measured, err = alternate(ctx, pings, count)
		return err
	}); err != nil {
		return nil, err
	}
	for i, w := range ways {
		lines = append(lines, claim.Information(fmt.Sprintf("%s: round trip, p50 of %d", w.name, count),
			lab.Microseconds(measured[i].all.Percentile(0.5)), "µs"))
		if i > 0 {
			added, deviation := measured[i].above(measured[0])
			lines = append(lines, claim.AtMost(w.name+": added to the round trip, p50", added, "µs", w.most),
				claim.Information(w.name+": standard error of the added time", deviation, "µs"))
		}
	}
	return lines, nil
}

// measuredTrips are the round trips of one way to send.
type measuredTrips struct {
	all   lab.Distribution
	parts [tripParts]lab.Distribution
}

// above returns the difference of the medians in µs, and its standard error, from the differences in each part.
func (m *measuredTrips) above(other *measuredTrips) (difference, deviation float64) {
	mean, squares := 0.0, 0.0
	var each [tripParts]float64
	for i := range each {
		each[i] = lab.Microseconds(m.parts[i].Percentile(0.5) - other.parts[i].Percentile(0.5))
		mean += each[i] / tripParts
	}
	for _, d := range each {
		squares += (d - mean) * (d - mean)
	}
	return lab.Microseconds(m.all.Percentile(0.5) - other.all.Percentile(0.5)),
		math.Sqrt(squares / (tripParts - 1) / tripParts)
}

// alternate makes round trips, one of each way in turn, count of each.
func alternate(ctx context.Context, pings []*ping, count int) (_ []*measuredTrips, err error) {
	release, err := pin()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	measured := make([]*measuredTrips, len(pings))
	for i := range measured {
		measured[i] = &measuredTrips{}
	}
	// The first trips find neighbours and routes.
	const first = 10
	for trip := -first; trip < count; trip++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i := range pings {
			// Another way begins each time: the previous trip may leave work to the processor.
			at := (i + trip + first) % len(pings)
			took, err := pings[at].trip()
			if err != nil {
				return nil, err
			}
			if trip >= 0 {
				measured[at].all.Add(took)
				measured[at].parts[trip*tripParts/count].Add(took)
			}
		}
	}
	return measured, nil
}

// pin keeps the calling goroutine on the last processor of the process until release is called. All ends of round trips
// are on one processor: otherwise the round trip of a way depends on where the scheduler has put its echo, by more than
// edges add.
func pin() (release func() error, err error) {
	runtime.LockOSThread()
	defer func() {
		if err != nil {
			runtime.UnlockOSThread()
		}
	}()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, fmt.Errorf("processors of a thread: %w", err)
	}
	last := 0
	for cpu, found := 0, 0; found < before.Count(); cpu++ {
		if before.IsSet(cpu) {
			last, found = cpu, found+1
		}
	}
	one.Set(last)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return nil, fmt.Errorf("keep a thread on one processor: %w", err)
	}
	return func() error {
		defer runtime.UnlockOSThread()
		return unix.SchedSetaffinity(0, &before)
	}, nil
}

// ping is a socket on one host, and a thread that echoes on the other.
type ping struct {
	near, far int // descriptors of connected sockets
	echoed    chan error
}

// tripPatience is the time limit for a datagram to return. Nothing is lost on veth pairs that carry packets.
const tripPatience = 2 * time.Second

// newPing opens both sockets, and starts to echo.
func newPing(e *traffic.Ends) (p *ping, err error) {
	p = &ping{near: -1, far: -1, echoed: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.closeSockets())
		}
	}()
	for _, at := range []struct {
		host    traffic.Host
		fd      *int
		address netip.Addr
	}{{e.From, &p.near, e.Source}, {e.To, &p.far, e.Destination}} {
		at.host.Do(func() { *at.fd, err = bound(at.address) })
		if err != nil {
			return nil, err
		}
	}
	for _, fds := range [][2]int{{p.near, p.far}, {p.far, p.near}} {
		to, err := unix.Getsockname(fds[1])
		if err != nil {
			return nil, err
		}
		if err := unix.Connect(fds[0], to); err != nil {
			return nil, err
		}
	}
	go func() { p.echoed <- p.echo() }()
	return p, nil
}

// bound returns a UDP socket whose reads end after tripPatience.
func bound(address netip.Addr) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	limit := unix.NsecToTimeval(int64(tripPatience))
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: address.As4()}),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// trip sends a datagram and waits until it has returned.
func (p *ping) trip() (time.Duration, error) {
	var datagram [tripBytes]byte
	began := time.Now()
	if _, err := unix.Write(p.near, datagram[:]); err != nil {
		return 0, err
	}
	n, err := read(p.near, datagram[:])
	if err == nil && n != tripBytes {
		err = fmt.Errorf("a datagram of %d bytes returned, expected %d", n, tripBytes)
	}
	if errors.Is(err, unix.EAGAIN) {
		err = fmt.Errorf("a datagram has not returned after %v", tripPatience)
	}
	return time.Since(began), err
}

// echo returns datagrams until the socket is shut down.
func (p *ping) echo() (err error) {
	release, err := pin()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	var datagram [tripBytes]byte
	for {
		n, err := read(p.far, datagram[:])
		switch {
		case errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return err
		case n == 0:
			return nil
		}
		if _, err := unix.Write(p.far, datagram[:n]); err != nil {
			return err
		}
	}
}

// read reads a datagram, again if a signal has interrupted the call: those of Go's scheduler do.
func read(fd int, datagram []byte) (n int, err error) {
	for {
		if n, err = unix.Read(fd, datagram); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// close ends the echo and closes the sockets.
func (p *ping) close() error {
	err := unix.Shutdown(p.far, unix.SHUT_RDWR)
	return errors.Join(err, <-p.echoed, p.closeSockets())
}

func (p *ping) closeSockets() (err error) {
	for _, fd := range []int{p.near, p.far} {
		if fd >= 0 {
			err = errors.Join(err, unix.Close(fd))
		}
	}
	return err
}
