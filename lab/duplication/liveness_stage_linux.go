package duplication

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/edgepair"
	"github.com/volsfu/volsfu/lab/experiment/paper003"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/traffic"
)

// The hosts of a stage. Packets flow from the server to the viewer.
const (
	server = paper003.HostServer
	viewer = paper003.HostViewer
)

const (
	// streamPort is the port of the stream's receiver, by which the rule selects the stream.
	streamPort = 6000
	// streamInterval and streamBytes are 1,000 packets/s of 1,200 bytes with headers: 9.6 Mbit/s. Five copies are less
	// than the emulated network carries on two processors.
	streamInterval = time.Millisecond
	streamBytes    = 1200 - 28
	// streamPatience is far more than the delay of any path.
	streamPatience = 2 * time.Second
)

// stage is an emulated network with a pair of edges and a stream of packets, which the pair copies.
type stage struct {
	network *topology.Network
	pair    *edgepair.Pair
	changes changeLog
	stream  *traffic.Train
	began   time.Time // when the schedules of the network began
}

// openStage starts a network, a pair whose rule has the copies and the deadline, and a stream. more, if not nil,
// returns further text of the configuration of the server's edge, and variables for its environment.
func openStage(ctx context.Context, b *bench, plan *topology.Topology, copies string, deadline time.Duration,
	more func(*topology.Network) (text string, environment []string, err error)) (_ *stage, err error) {
	volnet, err := b.program()
	if err != nil {
		return nil, err
	}
	s := &stage{}
	if s.network, err = topology.Start(ctx, plan); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	hosts := [2]string{server, viewer}
	config := edgepair.Config{Volnet: volnet, Links: edgepair.Parallel(s.network, hosts, len(plan.Paths)),
		Sides: edgepair.Exchange(s.network, hosts,
			fmt.Sprintf("protocol: udp, ports: %d, deadline: %v, copies: %s", streamPort, deadline, copies))}
	config.Sides[0].Log = &s.changes
	if more != nil {
		text, environment, err := more(s.network)
		if err != nil {
			return nil, err
		}
		config.Sides[0].Text += text
		config.Sides[0].Environment = environment
	}
	if s.pair, err = edgepair.Start(ctx, s.network, config); err != nil {
		return nil, err
	}
	if err := s.startStream(); err != nil {
		return nil, err
	}
	s.network.Restart()
	s.began = time.Now()
	return s, nil
}

// startStream starts the stream from the server to the viewer.
func (s *stage) startStream() (err error) {
	var from, to *net.UDPConn
	destination := net.UDPAddrFromAddrPort(netip.AddrPortFrom(s.network.Address(viewer), streamPort))
	if err := s.network.Inside(viewer, func() (err error) {
		to, err = net.ListenUDP("udp4", destination)
		return err
	}); err != nil {
		return err
	}
	if err := s.network.Inside(server, func() (err error) {
		from, err = net.DialUDP("udp4", nil, destination)
		return err
	}); err != nil {
		return errors.Join(err, to.Close())
	}
	s.stream, err = traffic.StartTrain(from, to, streamInterval, streamBytes)
	return err
}

// until waits until a time since the stage began.
func (s *stage) until(ctx context.Context, since time.Duration) error {
	return lab.Pause(ctx, time.Until(s.began.Add(since)))
}

// packets ends the stream and returns its packets, with times since the stage began.
func (s *stage) packets() ([]traffic.Datagram, error) {
	packets, err := s.stream.Stop(streamPatience)
	packets = slices.Clone(packets)
	offset := s.stream.Began().Sub(s.began)
	for i := range packets {
		packets[i].Sent += offset
		packets[i].Arrived += offset
	}
	return packets, err
}

// plain returns the number of packets that the edges have sent without a header.
func (s *stage) plain(ctx context.Context) (count uint64, err error) {
	for _, host := range []string{server, viewer} {
		status, err := s.pair.Status(ctx, host)
		if err != nil {
			return 0, err
		}
		count += status.Sent.Plain + status.Sent.Refused
	}
	return count, nil
}

// lateness returns lines about the lateness of the emulated network. A network that is late is itself a variation, and
// figures about path control are then those of a busy machine.
func (s *stage) lateness() []claim.Line {
	v := s.network.Validity()
	lines := []claim.Line{
		claim.Information("lateness of the emulated network, p95", lab.Milliseconds(v.P95), "ms"),
		claim.Information("lateness of the emulated network, p99.9", lab.Milliseconds(v.P999), "ms"),
	}
	for _, reason := range []string{v.Reason, v.Disturbance} {
		if reason != "" {
			lines = append(lines, claim.Information("busy machine: "+reason+"; longest", lab.Milliseconds(v.Max), "ms"))
		}
	}
	return lines
}

// close ends the stream, the pair and the network.
func (s *stage) close() (err error) {
	if s.stream != nil {
		_, err = s.stream.Stop(0)
	}
	if s.pair != nil {
		err = errors.Join(err, s.pair.Close())
	}
	return errors.Join(err, s.network.Close())
}

// parallel returns a network with a path for each delay, 400 Mbit/s each.
func parallel(delays ...time.Duration) *topology.Topology {
	t := &topology.Topology{Hosts: map[string]topology.Host{server: {}, viewer: {}},
		Links: make(map[string]topology.Link), Ethernet: true, Seed: 1}
	for i, delay := range delays {
		c := netem.DefaultConfig()
		c.RateBPS, c.Delay = 400e6, delay
		name := pathName(i)
		t.Links[name] = topology.Duplex(c)
		t.Paths = append(t.Paths, topology.Path{From: server, To: viewer, Through: []topology.Passage{{Link: name}}})
	}
	return t
}

// pathName returns the name of a path, which edgepair and the networks use, by its index.
func pathName(i int) string { return fmt.Sprintf("path%d", i+1) }
