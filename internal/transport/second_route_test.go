package transport

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/stun/v4"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
)

// copyCounter is a sink that counts packets by sequence number.
type copyCounter struct {
	NoOpSink
	mu sync.Mutex
	// first and repeated have the paths of the copies of each packet.
	first, repeated map[uint16]uint8
	twice, reports  int
}

func newCopyCounter() *copyCounter {
	return &copyCounter{first: make(map[uint16]uint8), repeated: make(map[uint16]uint8)}
}

func (c *copyCounter) RTP(_ uint32, packet []byte, info *PacketInfo) {
	var p rtp.Packet
	if p.Unmarshal(packet) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.first[p.SequenceNumber]; there {
		c.twice++
	}
	c.first[p.SequenceNumber] = info.Path
}

func (c *copyCounter) Repeated(_ uint32, sequence uint16, info *PacketInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.repeated[sequence] = info.Path
}

func (c *copyCounter) RTCP([]byte, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reports++
}

// counts returns the number of packets of which a first copy and of which a second copy has arrived.
func (c *copyCounter) counts() (first, repeated int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.first), len(c.repeated)
}

// dualPair is a pair whose answering peer has two sockets, which can be unplugged.
type dualPair struct {
	*pair
	gates     [2]*gate
	up, down  *copyCounter
	toOffers  *Outlet
	toAnswers *Outlet
}

// gateAt returns a gate on a loopback address.
func gateAt(t *testing.T, address string) *gate {
	t.Helper()
	conn, err := net.ListenPacket("udp4", address+":0")
	if err != nil {
		t.Fatal(err)
	}
	return &gate{PacketConn: conn}
}

// newDualPair connects two peers with a video line in each direction. The offering peer has one port. declared is set
// if the peers agree to use all pairs.
func newDualPair(t *testing.T, declared bool) *dualPair {
	t.Helper()
	d := &dualPair{pair: newPair(t), up: newCopyCounter(), down: newCopyCounter()}
	d.receiveBy(d.up)
	d.gates = [2]*gate{gateAt(t, "127.0.0.2"), gateAt(t, "127.0.0.3")}
	endpoint, err := Attach(ClientConfig(), d.gates[0], d.gates[1])
	if err != nil {
		t.Fatal(err)
	}
	peer, err := endpoint.NewPeer(d.down)
	if err != nil {
		t.Fatal(err)
	}
	_ = d.answers.Close()
	_ = d.endpoints[1].Close()
	d.answers, d.endpoints[1] = peer, endpoint
	d.join(declared)
	return d
}

// join connects the peers.
func (d *dualPair) join(declared bool) {
	d.t.Helper()
	d.answers.UseAllPairs()
	if declared {
		d.offers.UseAllPairs()
	}
	publish, err := d.offers.AddReceiving(volumetric.KindVideo)
	if err != nil {
		d.t.Fatal(err)
	}
	slot, err := d.offers.AddSending(volumetric.KindVideo, "slot-0")
	if err != nil {
		d.t.Fatal(err)
	}
	d.negotiate([]*Line{publish})
	d.connect()
	d.toOffers, d.toAnswers = d.attachBeforeSend[publish.MID()], slot.Outlet
}

// awaitRoutes waits until both peers send on the paths, and have a second route or none.
func (d *dualPair) awaitRoutes(path uint8, second bool) {
	d.t.Helper()
	d.until("routes", func() bool {
		for _, p := range []*Peer{d.offers, d.answers} {
			if p.PrimaryPath() != path || p.SecondRoute() != second {
				return false
			}
		}
		return true
	})
}

// awaitPath waits until both peers send on the path and have a second route.
func (d *dualPair) awaitPath(path uint8) {
	d.t.Helper()
	d.awaitRoutes(path, true)
}

// send queues packets with the numbers in both directions and flushes them as one run.
func (d *dualPair) send(from, to uint16, copied bool) {
	d.t.Helper()
	for _, o := range []*Outlet{d.toOffers, d.toAnswers} {
		media, _, _ := o.PayloadType(volumetric.MIMEVolumetric)
		o.peer.SetCopied(copied)
		for number := from; number != to; number++ {
			header := rtp.Header{Version: 2, PayloadType: media, SequenceNumber: number, SSRC: o.SSRC()}
			if err := o.Queue(&header, make([]byte, 1000)); err != nil {
				d.t.Fatal(err)
			}
		}
		o.peer.Flush()
	}
}

// TestDoubledPackets sends packets twice on the first path. The receiver hands over one, and the other as repeated.
func TestDoubledPackets(t *testing.T) {
	d := newDualPair(t, true)
	d.awaitPath(0)
	for _, p := range []*Peer{d.offers, d.answers} {
		p.SetDoubled(true)
	}
	d.send(0, 10, false)
	for _, p := range []*Peer{d.offers, d.answers} {
		p.SetDoubled(false)
	}
	d.send(10, 20, false)
	for name, c := range map[string]*copyCounter{"up": d.up, "down": d.down} {
		d.until("packets "+name, func() bool {
			first, repeated := c.counts()
			return first == 20 && repeated == 10
		})
		c.mu.Lock()
		for number, path := range c.repeated {
			if number >= 10 || path != 0 || c.first[number] != 0 {
				t.Errorf("%s: packet %d arrived on the paths %d and %d, expected twice on the first for packets 0 to 9",
					name, number, c.first[number], path)
			}
		}
		if c.twice > 0 {
			t.Errorf("%s: %d packets were handed over twice", name, c.twice)
		}
		c.mu.Unlock()
	}
}

// TestCopiesAreDroppedAndCounted sends packets with and without copies in both directions.
func TestCopiesAreDroppedAndCounted(t *testing.T) {
	d := newDualPair(t, true)
	d.awaitPath(0)
	// The receive buffers of the client's sockets have the system's size.
	for number := uint16(0); number < 200; number += 10 {
		d.send(number, number+10, number < 100 || number >= 150)
		d.until("ten packets in both directions", func() bool {
			up, _ := d.up.counts()
			down, _ := d.down.counts()
			return up == int(number)+10 && down == int(number)+10
		})
	}
	for name, c := range map[string]*copyCounter{"up": d.up, "down": d.down} {
		d.until("packets "+name, func() bool {
			first, repeated := c.counts()
			return first == 200 && repeated == 150
		})
		c.mu.Lock()
		for number, path := range c.repeated {
			if number >= 100 && number < 150 || path == c.first[number] {
				t.Errorf("%s: packet %d arrived on the paths %d and %d", name, number, c.first[number], path)
			}
		}
		if c.twice > 0 {
			t.Errorf("%s: %d packets were handed over twice", name, c.twice)
		}
		c.mu.Unlock()
	}
	for name, p := range map[string]*Peer{"server": d.offers, "client": d.answers} {
		paths := p.Paths()
		if len(paths) != 2 || paths[0].Path != 0 || paths[1].Path != 1 || !paths[0].Alive || !paths[1].Alive ||
			paths[0].First+paths[1].First != 200 || paths[0].Repeated+paths[1].Repeated != 150 ||
			paths[0].Copied != 0 || paths[1].Copied != 150 {
			t.Errorf("%s: paths are %+v", name, paths)
		}
	}
	// RTCP leaves twice and arrives once.
	report := &rtcp.ReceiverReport{SSRC: 1}
	if err := d.answers.WriteRTCP([]rtcp.Packet{report}); err != nil {
		t.Fatal(err)
	}
	d.until("the report", func() bool {
		d.up.mu.Lock()
		defer d.up.mu.Unlock()
		return d.up.reports == 1
	})
}

// TestUnpluggedRouteLosesNoCopiedPacket unplugs the primary path while packets with copies leave in both directions,
// and plugs it in again.
func TestUnpluggedRouteLosesNoCopiedPacket(t *testing.T) {
	d := newDualPair(t, true)
	d.awaitPath(0)
	number := uint16(0)
	// A receive buffer of the system's size holds 92 packets, while the goroutine that reads it waits for a processor.
	const atOnce = 50
	pump := func(what string, done func() bool) {
		t.Helper()
		d.until(what, func() bool {
			up, _ := d.up.counts()
			down, _ := d.down.counts()
			if int(number)-min(up, down) <= atOnce {
				d.send(number, number+10, true)
				number += 10
			}
			return done()
		})
	}
	on := func(path uint8, second bool) func() bool {
		return func() bool {
			return d.offers.PrimaryPath() == path && d.answers.PrimaryPath() == path &&
				d.offers.SecondRoute() == second && d.answers.SecondRoute() == second
		}
	}
	pump("some packets", func() bool { return number >= 100 })
	d.gates[0].shut.Store(true)
	pump("the second path to take over", on(1, false))
	follows := func(port int) func() bool {
		return func() bool {
			for _, p := range []*Peer{d.offers, d.answers} {
				selected, err := p.agent.GetSelectedCandidatePair()
				if err != nil || selected == nil {
					return false
				}
				client := selected.Remote
				if p == d.answers {
					client = selected.Local
				}
				if client.Port() != d.gates[port].LocalAddr().(*net.UDPAddr).Port {
					return false
				}
			}
			return true
		}
	}
	pump("ICE to follow", follows(1))
	d.gates[0].shut.Store(false)
	pump("the first path to return", on(0, true))
	pump("ICE to follow back", follows(0))
	for name, c := range map[string]*copyCounter{"up": d.up, "down": d.down} {
		d.until("all packets "+name, func() bool {
			first, _ := c.counts()
			return first == int(number)
		})
	}
	for _, p := range []*Peer{d.offers, d.answers} {
		for _, event := range p.Events() {
			if event.State == StateDisconnected || event.State == StateFailed {
				t.Errorf("the connection was interrupted: %v", event.State)
			}
		}
	}
}

// TestUndeclaredPairIsNoRoute: the client checks and reads both pairs, but has not declared so.
func TestUndeclaredPairIsNoRoute(t *testing.T) {
	d := newDualPair(t, false)
	d.until("the client's second route", d.answers.SecondRoute)
	d.offers.SetCopied(true)
	d.send(0, 30, true)
	d.until("packets down", func() bool {
		first, _ := d.down.counts()
		return first == 30
	})
	if _, repeated := d.down.counts(); d.offers.SecondRoute() || repeated > 0 || len(d.offers.Paths()) > 0 {
		t.Errorf("%d packets arrived twice, and the server has a second route: %t", repeated, d.offers.SecondRoute())
	}
}

// TestForgedCheckMakesNoRoute sends authentic checks from the address of a host that answers nothing, and of a STUN
// server, which answers checks without knowing the passwords. The address receives no media. A host that answers
// nothing receives answers and a bounded number of checks.
func TestForgedCheckMakesNoRoute(t *testing.T) {
	for name, response := range map[string]*stun.MessageType{
		"silent": nil, "success": &stun.BindingSuccess, "error": &stun.BindingError,
	} {
		t.Run(name, func(t *testing.T) { testForgedCheck(t, response) })
	}
}

// testForgedCheck sends checks from the address of a host that answers with a type of response, nil for no answers.
func testForgedCheck(t *testing.T, response *stun.MessageType) {
	d := newDualPair(t, true)
	d.awaitPath(0)
	d.gates[1].shut.Store(true)
	d.awaitRoutes(0, false)
	victim, err := net.ListenPacket("udp4", "127.0.0.9:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = victim.Close() }()
	server := d.offers.path.endpoint.mediaPorts()[0].Address()
	ufrag, password, err := d.offers.agent.GetLocalUserCredentials()
	if err != nil {
		t.Fatal(err)
	}
	own, _, err := d.answers.agent.GetLocalUserCredentials()
	if err != nil {
		t.Fatal(err)
	}
	media, received := make(chan struct{}, 1), make(chan int, 1)
	go func() {
		buffer, count := make([]byte, 2048), 0
		for {
			n, from, err := victim.ReadFrom(buffer)
			if err != nil {
				received <- count
				return
			}
			if count++; isMedia(buffer[:n]) {
				select {
				case media <- struct{}{}:
				default:
				}
			}
			check := &stun.Message{Raw: buffer[:n]}
			if response == nil || check.Decode() != nil || check.Type != stun.BindingRequest {
				continue
			}
			answer := stun.MustBuild(stun.NewTransactionIDSetter(check.TransactionID), *response)
			_, _ = victim.WriteTo(answer.Raw, from)
		}
	}()
	number := uint16(0)
	for sent := 0; sent < 40; sent++ {
		check, err := stun.Build(stun.BindingRequest, stun.TransactionID, stun.NewUsername(ufrag+":"+own),
			ice.AttrControlled(0), ice.PriorityAttr(checkPriority(1)), stun.NewShortTermIntegrity(password),
			stun.Fingerprint)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := victim.WriteTo(check.Raw, net.UDPAddrFromAddrPort(server)); err != nil {
			t.Fatal(err)
		}
		before := number
		d.send(number, number+10, true)
		number += 10
		d.until("packets", func() bool {
			first, _ := d.down.counts()
			return first == int(before)+10
		})
	}
	forged := victim.LocalAddr().(*net.UDPAddr).AddrPort()
	d.until("the check to be heard", func() bool {
		pairs := d.offers.path.pairs.Load()
		pairs.mu.Lock()
		defer pairs.mu.Unlock()
		return pairs.find(pairAddress{d.offers.path.endpoint.mediaPorts()[0], forged}) != nil
	})
	before := d.endpoints[0].Stats().Sent
	d.until("further checks of the routes", func() bool { return d.endpoints[0].Stats().Sent > before+8 })
	d.awaitRoutes(0, false)
	if err := victim.Close(); err != nil {
		t.Fatal(err)
	}
	count := <-received
	select {
	case <-media:
		t.Error("media was sent to an address that has answered no check")
	default:
	}
	// Each of the checks is answered once.
	if response == nil && count > 40+100 {
		t.Errorf("the address received %d datagrams", count)
	}
}

// TestCopiesAreRunsOfTheSameBytes queues packets of which some are copied, and compares the runs.
func TestCopiesAreRunsOfTheSameBytes(t *testing.T) {
	d := newDualPair(t, true)
	d.awaitPath(0)
	o := &d.offers.outbox
	media, _, _ := d.toAnswers.PayloadType(volumetric.MIMEVolumetric)
	queue := func(number uint16, size int, copied bool) {
		d.offers.SetCopied(copied)
		header := rtp.Header{Version: 2, PayloadType: media, SequenceNumber: number, SSRC: d.toAnswers.SSRC()}
		if err := d.toAnswers.Queue(&header, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range []struct {
		size   int
		copied bool
	}{{500, true}, {500, true}, {500, false}, {500, true}, {300, true}, {300, true}} {
		queue(uint16(i), p.size, p.copied)
	}
	o.mu.Lock()
	counts := make([]int, 0, len(o.copies))
	for _, run := range o.copies {
		counts = append(counts, run.Count())
	}
	primary := o.datagrams()
	inside := len(o.copies) > 0 && &o.copies[0].Data[0] == &o.buffer[0]
	o.mu.Unlock()
	if primary != 6 || len(counts) != 3 || counts[0] != 2 || counts[1] != 2 || counts[2] != 1 || !inside {
		t.Errorf("%d packets, copies in runs of %v; the copies have the same memory: %t", primary, counts, inside)
	}
	d.offers.Flush()
	d.until("copies", func() bool {
		first, repeated := d.down.counts()
		return first == 6 && repeated == 5
	})
}

// TestCopiesLeaveBeforeTheirBuffer: the primary route ends before packets with copies are posted. The packets leave
// through ICE, and their buffer is reused. The batch must not keep the copies.
func TestCopiesLeaveBeforeTheirBuffer(t *testing.T) {
	d := newDualPair(t, true)
	d.awaitPath(0)
	media, _, _ := d.toAnswers.PayloadType(volumetric.MIMEVolumetric)
	d.offers.SetCopied(true)
	header := rtp.Header{Version: 2, PayloadType: media, SSRC: d.toAnswers.SSRC()}
	if err := d.toAnswers.Queue(&header, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	path := &d.offers.path
	path.routing.Lock()
	route := path.route.Swap(nil)
	var batch Batch
	d.offers.Post(&batch)
	path.route.Store(route)
	path.routing.Unlock()
	if !batch.post.Empty() {
		t.Error("the batch keeps copies without their buffer")
	}
	d.until("the packet and its copy", func() bool {
		first, repeated := d.down.counts()
		return first == 1 && repeated == 1
	})
}

// TestQueueWithoutSecondRouteAllocatesNothing holds for peers that could copy packets, too.
func TestQueueWithoutSecondRouteAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("skipped: pools drop objects under the race detector")
	}
	p := newPair(t)
	p.receiveBy(NoOpSink{})
	outlet, header := p.connectVideo()
	payload := make([]byte, 1000)
	for _, copied := range []bool{false, true} {
		p.answers.SetCopied(copied)
		allocations := testing.AllocsPerRun(1000, func() {
			header.SequenceNumber++
			if err := outlet.Queue(&header, payload); err != nil {
				t.Fatal(err)
			}
			p.answers.Flush()
		})
		if allocations > 0 {
			t.Errorf("copied %t: %v allocations per packet, expected none", copied, allocations)
		}
	}
}
