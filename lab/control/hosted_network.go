package control

import (
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/topology"
)

// Hosts of a hosted run, besides the participants of a room.
const (
	hostServer    = "server"
	hostPublisher = "publisher"
	hostReceiver  = "receiver"
	hostRival     = "rival"
	hostSink      = "sink"
)

// Links of a hosted run, besides the uplinks and downlinks of the participants of a room.
const (
	linkBottleneck = "bottleneck"
	linkMedia      = "media"  // returns the packets of the media
	linkRivals     = "rivals" // returns the packets of competitors
)

// wire is one direction of a link.
type wire struct {
	link string
	way  topology.Way
}

// participantName returns the name of a participant of a room, and of the participant's host.
func participantName(i int) string { return fmt.Sprintf("participant%d", i+1) }

// uplinkName and downlinkName are the names of the two halves of a participant's access link. A competitor shares the
// uplink only: its acknowledgements do not meet the participant's downlink.
func uplinkName(i int) string   { return participantName(i) + "-up" }
func downlinkName(i int) string { return participantName(i) + "-down" }

// bottlenecks returns the bottlenecks of the case. Those of a room are the uplinks, and then the downlinks.
func (s *scenario) bottlenecks() (list []wire) {
	if s.participants == 0 {
		return []wire{{linkBottleneck, topology.Forth}}
	}
	for i := range s.participants {
		list = append(list, wire{uplinkName(i), topology.Forth})
	}
	for i := range s.participants {
		list = append(list, wire{downlinkName(i), topology.Back})
	}
	return list
}

// network returns the network of the case. Packets of the media and of competitors share the bottleneck, and return by
// links of their own, whose delays complete the round trips.
func (s *scenario) network() *topology.Topology {
	forth := s.access()
	direction := topology.Direction{Config: forth}
	if len(s.trace.Steps) > 1 {
		direction.Trace = &s.trace
	}
	t := &topology.Topology{Seed: s.options.Seed, Links: make(map[string]topology.Link),
		Hosts: map[string]topology.Host{
			hostServer: {}, hostRival: {}, hostSink: {},
		}}
	if s.options.CubicECN {
		sysctls := map[string]string{"net.ipv4.tcp_ecn": "1"}
		t.Hosts[hostRival], t.Hosts[hostSink] = topology.Host{Sysctls: sysctls}, topology.Host{Sysctls: sysctls}
	}
	shared := linkBottleneck
	if s.participants > 0 {
		shared = uplinkName(0)
		for i := range s.participants {
			t.Hosts[participantName(i)] = topology.Host{}
			t.Links[uplinkName(i)] = topology.Link{Forth: direction}
			t.Links[downlinkName(i)] = topology.Link{Back: direction}
			t.Paths = append(t.Paths, topology.Path{From: participantName(i), To: hostServer,
				Through: through(uplinkName(i), downlinkName(i))})
		}
	} else {
		from, to := hostServer, hostReceiver
		if s.uplink {
			from, to = hostPublisher, hostServer
		}
		t.Hosts[from], t.Hosts[to] = topology.Host{}, topology.Host{}
		t.Links[linkBottleneck] = topology.Link{Forth: direction, Back: topology.Direction{
			Config: netem.Config{Loss: s.loss}}}
		t.Links[linkMedia] = returning(s.options.RTT - forth.Delay)
		t.Paths = append(t.Paths, topology.Path{From: from, To: to, Through: through(linkBottleneck, linkMedia)})
	}
	t.Links[linkRivals] = returning(s.options.RivalRTT - forth.Delay)
	t.Paths = append(t.Paths, topology.Path{From: hostRival, To: hostSink, Through: through(shared, linkRivals)})
	return t
}

// returning returns a link with a delay on the way back.
func returning(delay time.Duration) topology.Link {
	return topology.Link{Back: topology.Direction{Config: netem.Config{Delay: delay}}}
}

func through(links ...string) (passages []topology.Passage) {
	for _, link := range links {
		passages = append(passages, topology.Passage{Link: link})
	}
	return passages
}
