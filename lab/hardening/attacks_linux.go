package hardening

import (
	"context"
	"net"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/intruder"
)

// attacks lists all attacks, in the order of their checks' numbers.
var attacks = []attack{
	{"records", "DTLS records: an empty fragment, spoofed and in session; mutated handshakes", attackRecords},
	{"neighbours", "64 candidates that are unused addresses of the server's network, 10 times", attackNeighbours},
	{"vanishing", "20 receivers on the server's network vanish together", attackVanishing},
	{"replay", "one valid STUN request, replayed at full speed from one port and from 101", attackReplay},
	{"messages", "plaintext DTLS handshake messages after the handshake", attackMessages},
	{"sctp", "SCTP: empty fragments, opened channels", attackSCTP},
	{"bystander", "candidates of a bystander in 1 and in 55 answers, spoofed checks", attackBystander},
	{"alerts", "spoofed plaintext alerts and application data", attackAlerts},
	{"hijack", "a participant's address as another's candidate, 60 ms away", attackHijack},
	{"joins", "refused joins over 4 websockets", attackJoins},
	{"everything", "everything at once, by one token from one address", attackEverything},
	{"silence", "a receiver that goes silent gets no more media", attackSilence},
	{"decoders", "decoders: frames that claim more than they hold", attackDecoders},
}

// spoofed is the number of message numbers tried by an outsider who does not know the progress of a handshake.
const spoofed = 20

// attackRecords sends hostile DTLS records.
func attackRecords(ctx context.Context, c *check) ([]claim.Line, error) {
	outside, err := c.once(ctx, c.options.brief(), func(ctx context.Context, s *stage) error {
		return s.spoofEach(ctx, spoofed, intruder.EmptyBeyondStart)
	})
	if err != nil {
		return nil, err
	}
	lines := append([]claim.Line{outside.survival("spoofed fragment: ")}, outside.whole("spoofed fragment: ")...)
	inside, err := c.once(ctx, c.options.brief(), func(ctx context.Context, s *stage) error {
		i, p, err := s.reachData(ctx)
		if err != nil {
			return err
		}
		defer i.Close()
		defer p.End()
		for n := range uint16(spoofed) {
			_, _ = p.WriteTo(intruder.EmptyBeyondStart(n), nil)
		}
		return lab.Pause(ctx, time.Second)
	})
	if err != nil {
		return lines, err
	}
	lines = append(append(lines, inside.survival("fragment in session: ")), inside.whole("fragment in session: ")...)
	var sent flooded
	mutated, err := c.once(ctx, c.options.brief(), func(ctx context.Context, s *stage) (err error) {
		sent, err = s.mutate(ctx)
		return err
	})
	if err != nil {
		return lines, err
	}
	lines = append(append(lines, mutated.survival("mutated records: ")), mutated.whole("mutated records: ")...)
	return append(append(lines, mutated.bounded("mutated records: ")...), sent.lines("mutated records: ")...), nil
}

// once runs one variant of an attack, on its own stage or, with Options.OneServer, on the shared stage.
func (c *check) once(
	ctx context.Context, after time.Duration, attack func(context.Context, *stage) error,
) (outcome, error) {
	s := c.shared
	if s == nil || s.server.dead() {
		c.leave()
		var err error
		if s, err = newStage(ctx, c, stageOptions{}); err != nil {
			return outcome{}, err
		}
		if c.options.OneServer {
			c.shared = s
		} else {
			defer s.close()
		}
	}
	return s.measure(ctx, after, func(ctx context.Context) error { return attack(ctx, s) })
}

// lines returns the lines about the sent traffic.
func (f *flooded) lines(prefix string) []claim.Line {
	return []claim.Line{
		claim.Stated(prefix+"datagrams sent", float64(f.packets), ""),
		claim.Stated(prefix+"rate that the sender reached", f.rate(), "datagrams/s"),
		claim.Stated(prefix+"bit rate that the sender reached", f.megabits(), "Mbit/s"),
	}
}

// spoofEach sends records with the source address of each innocent, then waits a second.
func (s *stage) spoofEach(ctx context.Context, count uint16, record func(uint16) []byte) error {
	spoof, err := s.attacker.newSpoofer()
	if err != nil {
		return err
	}
	defer spoof.close()
	for _, from := range s.addresses {
		for n := range count {
			if err := spoof.send(from, s.server.media(), record(n)); err != nil {
				return err
			}
		}
	}
	return lab.Pause(ctx, time.Second)
}

const (
	// mutatedRate is in datagrams per second.
	mutatedRate = 10_000
	// mutatedTime is the time for which one connection gets mutated records. The server may end the connection earlier.
	mutatedTime = 500 * time.Millisecond
)

// mutate sends mutated records on one connection after the other. Half of the connections have completed their
// handshake.
func (s *stage) mutate(ctx context.Context) (flooded, error) {
	m := intruder.NewMutator(s.check.options.Seed)
	var total flooded
	for n := 0; total.lasted < s.check.options.Flood && !s.server.dead(); n++ {
		sent, err := s.mutateOne(ctx, m, n%2 == 0)
		total.add(sent)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

func (s *stage) mutateOne(ctx context.Context, m *intruder.Mutator, handshake bool) (flooded, error) {
	i, p, err := s.reachData(ctx)
	if err != nil {
		return flooded{}, err
	}
	defer i.Close()
	defer p.End()
	if handshake {
		conn, err := p.Handshake(ctx)
		if err != nil {
			return flooded{}, err
		}
		defer func() { _ = conn.Close() }()
		for _, record := range p.Sent() {
			m.Learn(record)
		}
	}
	return flood(ctx, p.Server, min(mutatedTime, s.check.options.Flood), mutatedRate, m.Next, p.UDPConn)
}

// attackReplay replays a request that the server accepts as valid.
func attackReplay(ctx context.Context, c *check) ([]claim.Line, error) {
	var lines []claim.Line
	for _, way := range []struct {
		name  string
		ports int
	}{{"one port: ", 0}, {"100 ports more: ", replayPorts}} {
		var sent flooded
		o, err := c.once(ctx, c.options.After, func(ctx context.Context, s *stage) (err error) {
			sent, err = s.replay(ctx, c.options.Flood, unlimited, way.ports)
			return err
		})
		if err != nil {
			return lines, err
		}
		lines = append(lines, o.flooding(way.name, sent)...)
	}
	return lines, nil
}

// replayPorts is the number of additional ports from which a request is replayed. At the full speed of one core each
// port sends some 1,500 requests per second.
const replayPorts = 100

// flooding returns the lines of an attack by rate.
func (o *outcome) flooding(prefix string, sent flooded) []claim.Line {
	lines := append([]claim.Line{o.survival(prefix)}, o.bounded(prefix)...)
	lines = append(lines, o.whole(prefix)...)
	return append(lines, sent.lines(prefix)...)
}

// replay replays one binding request from its own port and from the given number of other ports.
func (s *stage) replay(ctx context.Context, lasting time.Duration, rate, others int) (flooded, error) {
	i, p, err := s.reachData(ctx)
	if err != nil {
		return flooded{}, err
	}
	defer i.Close()
	defer p.End()
	conns := []*net.UDPConn{p.UDPConn}
	for range others {
		conn, err := s.attacker.listenUDP()
		if err != nil {
			return flooded{}, err
		}
		defer func() { _ = conn.Close() }()
		conns = append(conns, conn)
	}
	request := i.Request()
	return flood(ctx, p.Server, lasting, rate, func(b []byte) int { return copy(b, request) }, conns...)
}

// attackMessages sends handshake messages after the handshake. A server that stores such messages does so in the order
// of their numbers: at full speed some are lost, and messages after a gap are not stored.
func attackMessages(ctx context.Context, c *check) ([]claim.Line, error) {
	var lines []claim.Line
	for _, way := range []struct {
		name string
		rate int
		last time.Duration
	}{
		{"4,500 datagrams/s: ", 4500, min(c.options.Flood, slowTime)},
		{"full speed: ", unlimited, c.options.Flood},
	} {
		var sent flooded
		o, err := c.once(ctx, c.options.After, func(ctx context.Context, s *stage) (err error) {
			sent, err = s.messages(ctx, way.last, way.rate)
			return err
		})
		if err != nil {
			return lines, err
		}
		lines = append(lines, o.flooding(way.name, sent)...)
	}
	return lines, nil
}

const (
	// messageBytes is the length of each message, which fills an Ethernet datagram.
	messageBytes = 1300
	// firstMessage is the number of the message that the server expects after a handshake: two hellos, certificate, key
	// exchange, verification and the end had been sent before.
	firstMessage = 6
)

// messages sends plaintext handshake messages whose numbers continue those of the handshake.
func (s *stage) messages(ctx context.Context, lasting time.Duration, rate int) (flooded, error) {
	i, p, err := s.reachData(ctx)
	if err != nil {
		return flooded{}, err
	}
	defer i.Close()
	defer p.End()
	conn, err := p.Handshake(ctx)
	if err != nil {
		return flooded{}, err
	}
	defer func() { _ = conn.Close() }()
	number := uint64(0)
	body := make([]byte, messageBytes)
	return flood(ctx, p.Server, lasting, rate, func(b []byte) int {
		number++
		message := intruder.Fragment(intruder.CertificateMessage, uint16(firstMessage-1+number), messageBytes, 0, body)
		return copy(b, intruder.Record(intruder.Handshake, 1000+number, message))
	}, p.UDPConn)
}

// attackSCTP floods SCTP with three kinds of packets at full speed, and with the first kind slowly as well.
func attackSCTP(ctx context.Context, c *check) ([]claim.Line, error) {
	var lines []claim.Line
	for _, way := range []struct {
		name string
		rate int
		last time.Duration
		kind intruder.Packets
	}{
		{"empty fragments, 100 packets/s: ", 100, min(c.options.Flood, slowTime), intruder.EmptyFragments},
		{"empty fragments, full speed: ", unlimited, c.options.Flood, intruder.EmptyFragments},
		{"opened channels, full speed: ", unlimited, c.options.Flood, intruder.OpenedChannels},
		{"heartbeats, full speed: ", unlimited, c.options.Flood, intruder.Heartbeats},
	} {
		var sent flooded
		o, err := c.once(ctx, c.options.After, func(ctx context.Context, s *stage) (err error) {
			sent, err = s.overSCTP(ctx, way.last, way.rate, way.kind)
			return err
		})
		if err != nil {
			return lines, err
		}
		lines = append(lines, o.flooding(way.name, sent)...)
	}
	return lines, nil
}

const (
	// slowTime is the length of slow floods: without a bound, a server runs out of memory after five seconds of SCTP's,
	// and stores 100 MB of DTLS's.
	slowTime = 20 * time.Second
	// ahead is the number of TSNs that may be sent without acknowledgement. After that, the intruder sends the first
	// TSN again.
	ahead = 20_000
)

// overSCTP sends packets over an association, each with as many TSNs as it has chunks. If the server ends the
// association, the intruder joins again.
func (s *stage) overSCTP(ctx context.Context, lasting time.Duration, rate int, kind intruder.Packets) (flooded, error) {
	var total flooded
	began := time.Now()
	for time.Since(began) < lasting && !s.server.dead() {
		err := s.overAssociation(ctx, began, lasting, rate, kind, &total)
		if ctx.Err() != nil {
			return total, ctx.Err()
		}
		if err != nil && total.packets == 0 {
			return total, err
		}
		if err := lab.Pause(ctx, comeAgain); err != nil {
			return total, err
		}
	}
	total.lasted = time.Since(began)
	return total, nil
}

// comeAgain is the time after which an intruder joins again.
const comeAgain = 200 * time.Millisecond

// overAssociation sends on one association until the time is over or the association ends.
func (s *stage) overAssociation(
	ctx context.Context, began time.Time, lasting time.Duration, rate int, kind intruder.Packets, total *flooded,
) error {
	i, p, err := s.reachData(ctx)
	if err != nil {
		return err
	}
	defer i.Close()
	defer p.End()
	conn, err := p.Handshake(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	a, err := intruder.Associate(ctx, conn)
	if err != nil {
		return err
	}
	defer a.Abort()
	next := a.Next()
	for time.Since(began) < lasting {
		select {
		case <-i.Ended():
			return intruder.ErrRefused
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		if rate != unlimited && total.packets >= int64(time.Since(began).Seconds()*float64(rate)) {
			time.Sleep(time.Millisecond)
			continue
		}
		if next-a.Acknowledged() > ahead {
			next = a.Acknowledged() + 1
		}
		packet := kind.Packet(a.Tag(), next)
		if err := a.Send(packet); err != nil {
			return err
		}
		total.packets++
		total.bytes += int64(len(packet))
		next += kind.Numbered
	}
	return nil
}
