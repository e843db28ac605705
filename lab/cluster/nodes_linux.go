package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/exposition"
	"github.com/volsfu/volsfu/test/testbed"
)

// Ports of each node.
const (
	signalPort = 8080
	adminPort  = 9090
	mediaPort  = 7882
	trunkPort  = 7883
	routePort  = 6222
	natsPort   = 4222
)

// key signs tokens. The servers are not reachable from other networks.
const key = "lab:a-secret-of-the-check-of-32-bytes-or-more"

// nodeNames are the names of the nodes, in their order.
var nodeNames = []string{"a", "b", "c", "d", "e"}

// patience bounds the waits of all measurements.
const patience = 30 * time.Second

// drainPatience bounds the drain of a node.
const drainPatience = time.Minute

// unhurried are flags with which a server estimates every link as wide and drops no late data: a machine that stalls
// looks like a congested link and delays frames, which measurements that count frames must not see.
var unhurried = []string{"--forward-congestion-min-bps", "200000000", "--forward-congestion-start-bps", "200000000",
	"--forward-max-lag", "2s", "--forward-cache-age", "4s", "--forward-queue-budget", "2s"}

// setup selects the nodes and their programs.
type setup struct {
	// nodes is the number of nodes.
	nodes int
	// between, if not nil, has the parameters of the links between nodes.
	between *netem.Config
	// external is set for a NATS server in this process instead of servers inside the nodes.
	external bool
	// oneRegion is set if all nodes are in one region, so that participants of a room gather on one node. Otherwise
	// each node has a region of its own, and participants stay on the node at which they join.
	oneRegion bool
	// arguments are further flags of all nodes.
	arguments []string
	// program replaces the program of all nodes unless empty.
	program string
}

// node is one server.
type node struct {
	*lab.ServerProgram
	name string
	// conference has the participants that joined here.
	conference *testbed.Conference
	// started is the time from the start of the program until it was ready.
	started time.Duration
}

// metrics reads the metrics of the node.
func (n *node) metrics(ctx context.Context) (exposition.Series, error) {
	return exposition.Scrape(ctx, "http://"+n.Admin+"/metrics")
}

// nodes is a cluster, whose nodes may run or not.
type nodes struct {
	setup
	network *network
	// nats is the external server, nil without one or while it is gone.
	nats    *server.Server
	folder  string
	token   string
	all     []*node
	cancel  context.CancelFunc
	running context.Context
}

// newNodes makes the certificates with volsfu, and starts all nodes one after the other.
func newNodes(ctx context.Context, b *bench, s setup) (n *nodes, err error) {
	if s.program == "" {
		if s.program, err = b.program(); err != nil {
			return nil, err
		}
	}
	n = &nodes{setup: s}
	// The programs end with the cluster, not with the measurement's context: they are stopped in order.
	n.running, n.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if n.network, err = newNetwork(ctx, nodeNames[:s.nodes], s.between); err != nil {
		return n, err
	}
	if n.folder, err = os.MkdirTemp("", "volsfu-cluster-"); err != nil {
		return n, err
	}
	if s.external {
		if n.nats, err = startNATS(); err != nil {
			return n, err
		}
	}
	for _, name := range n.network.hosts {
		region := name
		if s.oneRegion {
			region = "all"
		}
		if err := makeCertificate(ctx, s.program, n.folder, region, name); err != nil {
			return n, err
		}
	}
	if n.token, err = mint(true); err != nil {
		return n, err
	}
	for i, name := range n.network.hosts {
		n.all = append(n.all, &node{name: name,
			conference: testbed.Attend(fmt.Sprintf("ws://%v:%d", forClients.address(i), signalPort))})
	}
	for i := range n.all {
		if err := n.start(ctx, i, s.program); err != nil {
			return n, err
		}
	}
	return n, n.awaitMembers(ctx)
}

// makeCertificate makes the certificate of a node in a folder, with the command of the server.
func makeCertificate(ctx context.Context, program, folder, region, name string) error {
	made := exec.CommandContext(ctx, program, "cluster", "certificate", "--directory", folder, "--region", region, name)
	if said, err := made.CombinedOutput(); err != nil {
		return fmt.Errorf("volsfu cluster certificate: %w: %s", err, said)
	}
	return nil
}

// mint makes a token of participants, who may publish or not.
func mint(publish bool) (string, error) {
	keys, err := auth.NewKeyring(auth.Config{Keys: []string{key}})
	if err != nil {
		return "", err
	}
	now := time.Now()
	return keys.Mint("", auth.Claims{Publish: publish, Subscribe: true, Expires: now.Add(4 * time.Hour)}, now)
}

// url returns the value of --cluster for a node: all other nodes are seeds.
func (n *nodes) url(number int) string {
	if n.external {
		return fmt.Sprintf("nats://%v:%d", forNodes.own(), natsPort)
	}
	items := []string{fmt.Sprintf(":%d", routePort)}
	for i := range n.all {
		if i != number {
			items = append(items, fmt.Sprintf("%v:%d", n.network.nodeAddress(i), routePort))
		}
	}
	return "embedded://" + strings.Join(items, ",")
}

// start starts a node with a program.
func (n *nodes) start(ctx context.Context, number int, program string) (err error) {
	at, address := n.all[number], forClients.address(number).String()
	arguments := append([]string{"serve", "--listen", fmt.Sprintf("%s:%d", address, signalPort), "--admin-listen",
		fmt.Sprintf("%s:%d", address, adminPort), "--media-address", address, "--media-port", fmt.Sprint(mediaPort),
		"--auth-keys", key, "--log-format", "json", "--cluster", n.url(number), "--cluster-port",
		fmt.Sprint(trunkPort), "--cluster-directory", filepath.Join(n.folder, at.name)}, n.arguments...)
	began := time.Now()
	at.ServerProgram, err = lab.StartServerCommand(ctx, n.network.Command(n.running, at.name, program, arguments...))
	at.started = time.Since(began)
	if err != nil {
		return fmt.Errorf("node %s: %w", at.name, err)
	}
	return nil
}

// kill ends a node without warning.
func (n *nodes) kill(number int) {
	n.all[number].Kill()
	n.all[number].ServerProgram = nil
}

// signal sends a signal to a node.
func (n *nodes) signal(number int, s syscall.Signal) error {
	return syscall.Kill(n.all[number].PID(), s)
}

// terminate asks a node to drain, and waits until it has ended.
func (n *nodes) terminate(ctx context.Context, number int) error {
	at := n.all[number]
	if err := n.signal(number, syscall.SIGTERM); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, drainPatience)
	defer cancel()
	if err := at.Wait(ctx); err != nil {
		return err
	}
	at.ServerProgram = nil
	return nil
}

// alive returns the numbers of the nodes that run.
func (n *nodes) alive() (list []int) {
	for i, at := range n.all {
		if at.ServerProgram != nil {
			list = append(list, i)
		}
	}
	return list
}

// awaitMembers waits until visitors at all nodes that run are in one room: then all nodes know each other. The visitors
// neither publish nor receive.
func (n *nodes) awaitMembers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	room := fmt.Sprintf("members %d", time.Now().UnixNano())
	visitors := make(map[int]*testbed.Peer)
	defer func() {
		for _, p := range visitors {
			p.Leave()
		}
	}()
	for _, i := range n.alive() {
		p, err := n.all[i].conference.Join(ctx, testbed.Part{Room: room, Identity: "visitor " + n.all[i].name,
			Token: n.token})
		if err != nil {
			return err
		}
		visitors[i] = p
	}
	for _, i := range slices.Sorted(maps.Keys(visitors)) {
		p := visitors[i]
		if err := testbed.Await(ctx, "node "+n.all[i].name+" shares a room with the others", func() bool {
			return len(p.Session.Participants()) == len(visitors)-1
		}); err != nil {
			return err
		}
	}
	return nil
}

// join lets a participant join at a node, and waits until it is connected.
func (n *nodes) join(ctx context.Context, number int, part testbed.Part) (*testbed.Peer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	part.Token, part.MinUplink, part.QueueBudget = n.token, testbed.Everything, 2*time.Second
	p, err := n.all[number].conference.Join(ctx, part)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.Connected:
		return p, nil
	case <-ctx.Done():
		p.Leave()
		return nil, fmt.Errorf("%s is not connected after %v: %w", part.Identity, patience, ctx.Err())
	}
}

// startNATS starts an external NATS server.
func startNATS() (*server.Server, error) {
	s, err := server.NewServer(&server.Options{Host: forNodes.own().String(), Port: natsPort, NoSigs: true,
		NoLog: true})
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(patience) {
		s.Shutdown()
		return nil, fmt.Errorf("the NATS server does not listen after %v", patience)
	}
	return s, nil
}

// stopNATS ends the external server, if there is one.
func (n *nodes) stopNATS() {
	if n.nats != nil {
		n.nats.Shutdown()
		n.nats.WaitForShutdown()
		n.nats = nil
	}
}

// close ends all participants, nodes and networks.
func (n *nodes) close() (err error) {
	for _, at := range n.all {
		at.conference.Close()
	}
	for _, at := range n.all {
		if at.ServerProgram != nil {
			at.Kill()
		}
	}
	n.cancel()
	n.stopNATS()
	if n.network != nil {
		err = n.network.close()
	}
	if n.folder != "" {
		err = errors.Join(err, os.RemoveAll(n.folder))
	}
	return err
}
