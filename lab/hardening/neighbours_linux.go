package hardening

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/intruder"
	"github.com/volsfu/volsfu/test/testbed"
)

const (
	// websockets is the number of websockets of an attacker who names unused addresses.
	websockets = 10
	// candidatesPerAnswer is the largest number of candidates in a description.
	candidatesPerAnswer = 64
	// checkTime is the length of an attack by checks: 400 checks of a pair, 50 ms apart, take 20 s.
	checkTime = 20 * time.Second
	// spreadWatchers is the number of watchers if a socket's send buffer is attacked. The server has a socket for each
	// of two cores. All four watchers are on the other socket in one of 16 runs.
	spreadWatchers = 4
	// candidatePort is the first port that candidates name.
	candidatePort = 10_000
)

// attackNeighbours makes the server send checks to addresses without an ARP reply. The kernel queues these packets and
// charges them to the socket's send buffer.
func attackNeighbours(ctx context.Context, c *check) ([]claim.Line, error) {
	s, err := newStage(ctx, c, stageOptions{watchers: spreadWatchers})
	if err != nil {
		return nil, err
	}
	defer s.close()
	o, err := s.measure(ctx, c.options.After, func(ctx context.Context) error {
		for group := range websockets {
			var candidates []netip.AddrPort
			for n := range candidatesPerAnswer {
				candidates = append(candidates, netip.AddrPortFrom(unused(1+group, 1+n), candidatePort))
			}
			i, err := s.nameCandidates(ctx, candidates)
			if err != nil {
				return err
			}
			defer i.Close()
		}
		return lab.Pause(ctx, s.check.options.atMost(checkTime))
	})
	if err != nil {
		return nil, err
	}
	return append(append([]claim.Line{o.survival("")}, o.steady("")...), o.shares()...), nil
}

// nameCandidates joins an intruder that names candidates in one answer.
func (s *stage) nameCandidates(ctx context.Context, candidates []netip.AddrPort) (*intruder.Intruder, error) {
	i, err := s.join(ctx)
	if err != nil {
		return nil, err
	}
	offer, err := i.Offer(ctx)
	if err == nil {
		err = i.Answer(offer, candidates...)
	}
	if err != nil {
		i.Close()
		return nil, err
	}
	return i, nil
}

// shares returns the lines on the server's processor time, for information.
func (o *outcome) shares() []claim.Line {
	return []claim.Line{
		claim.Information("server's processor time, innocents alone", 100*o.quiet, "% of a core"),
		claim.Information("server's processor time under attack", 100*o.attacked, "% of a core"),
	}
}

const (
	// receivers is the number of receivers that vanish together.
	receivers = 20
	// vanishedTime is the length of the attack: media continues for 20 s until ICE gives up on the receivers.
	vanishedTime = 30 * time.Second
)

// attackVanishing removes the addresses of receivers. The attack also deletes their link addresses on the server's
// host; the kernel would do this by itself after some seconds.
func attackVanishing(ctx context.Context, c *check) ([]claim.Line, error) {
	s, err := newStage(ctx, c, stageOptions{watchers: spreadWatchers})
	if err != nil {
		return nil, err
	}
	defer s.close()
	var hosts []*namespace
	var peers []*testbed.Peer
	for n := range receivers {
		name := fmt.Sprintf("receiver %d", n)
		host, err := s.network.host(name)
		if err != nil {
			return nil, err
		}
		p, err := s.attend(ctx, host, testbed.Part{Identity: name, Receive: true}, 0)
		if err != nil {
			return nil, err
		}
		hosts, peers = append(hosts, host), append(peers, p)
	}
	for n, p := range peers {
		if err := s.flowing(ctx, p); err != nil {
			return nil, fmt.Errorf("receiver %d: %w", n, err)
		}
	}
	o, err := s.measure(ctx, c.options.After, func(ctx context.Context) error {
		failed := make(chan error, receivers)
		var vanishing sync.WaitGroup
		for _, host := range hosts {
			vanishing.Go(func() { failed <- host.ip("address flush dev " + device) })
		}
		vanishing.Wait()
		for _, host := range hosts {
			forget := fmt.Sprintf("neighbour delete %v dev %s", host.address, device)
			if err := errors.Join(<-failed, s.server.host.ip(forget)); err != nil {
				return err
			}
		}
		return lab.Pause(ctx, c.options.atMost(vanishedTime))
	})
	if err != nil {
		return nil, err
	}
	return append(append([]claim.Line{o.survival("")}, o.steady("")...), o.shares()...), nil
}

const (
	// manyAnswers is the number of answers that name other ports of the bystander.
	manyAnswers = 55
	// mostPerAnswer is the largest number of datagrams that may reach a bystander for each answer naming the bystander.
	mostPerAnswer = 100
	// answerPatience is the time limit for the next offer. The attack does not wait for a server that accepts no more
	// answers.
	answerPatience = 3 * time.Second
)

// attackBystander aims the server's checks at a host that is not a participant.
func attackBystander(ctx context.Context, c *check) ([]claim.Line, error) {
	var lines []claim.Line
	for _, way := range []struct {
		name string
		do   func(context.Context, *stage, *namespace) (int, error)
		// most is the largest number of datagrams for each count of do; 0 if each count justifies one reply.
		most int64
		unit string
	}{
		{"1 answer: ", nameBystanderOnce, mostPerAnswer, "answers"},
		{"55 answers: ", nameBystanderOften, mostPerAnswer, "answers"},
		{"64 spoofed checks: ", spoofChecks, 0, "checks"},
	} {
		some, err := c.atBystander(ctx, way.name, way.unit, way.most, way.do)
		lines = append(lines, some...)
		if err != nil {
			return lines, err
		}
	}
	return lines, nil
}

func (c *check) atBystander(
	ctx context.Context, name, unit string, most int64, do func(context.Context, *stage, *namespace) (int, error),
) ([]claim.Line, error) {
	s, err := newStage(ctx, c, stageOptions{})
	if err != nil {
		return nil, err
	}
	defer s.close()
	bystander, err := s.network.host("bystander")
	if err != nil {
		return nil, err
	}
	t, err := bystander.newTap()
	if err != nil {
		return nil, err
	}
	count := 0
	o, err := s.measure(ctx, c.options.atMost(checkTime), func(ctx context.Context) (err error) {
		count, err = do(ctx, s, bystander)
		return err
	})
	t.close()
	if err != nil {
		return nil, err
	}
	reached := t.datagrams.Load() + t.missed.Load()
	lines := []claim.Line{
		o.survival(name),
		claim.Stated(name+unit+" that the server took", float64(count), ""),
		claim.Information(name+"bytes that reached the bystander", float64(t.bytes.Load()), ""),
	}
	const figure = "datagrams that reached the bystander"
	if most > 0 {
		each := float64(reached) / float64(max(1, count))
		lines = append(lines, claim.Information(name+figure, float64(reached), ""),
			claim.AtMost(name+figure+" per answer", each, "", float64(most)))
	} else {
		// Each check justifies one reply.
		beside := float64(reached) - float64(count)
		lines = append(lines, claim.AtMost(name+figure+" beside one reply each", beside, "", mostPerAnswer))
	}
	lines = append(lines, o.whole(name)...)
	return append(lines, claim.Information(name+"server's processor time under attack", 100*o.attacked, share)), nil
}

// portsOf returns candidates on as many ports of a host as a description may have.
func portsOf(host *namespace, first int) []netip.AddrPort {
	var list []netip.AddrPort
	for n := range candidatesPerAnswer {
		list = append(list, netip.AddrPortFrom(host.address, uint16(candidatePort+first+n)))
	}
	return list
}

func nameBystanderOnce(ctx context.Context, s *stage, bystander *namespace) (int, error) {
	i, err := s.nameCandidates(ctx, portsOf(bystander, 0))
	if err != nil {
		return 0, err
	}
	defer i.Close()
	return 1, lab.Pause(ctx, s.check.options.atMost(checkTime))
}

// nameBystanderOften publishes repeatedly: each publication causes an offer, and each offer an answer.
func nameBystanderOften(ctx context.Context, s *stage, bystander *namespace) (int, error) {
	i, err := s.nameCandidates(ctx, portsOf(bystander, 0))
	if err != nil {
		return 0, err
	}
	defer i.Close()
	taken := 1
	for n := 1; n < manyAnswers; n++ {
		publication := volumetric.Publication{
			Name: fmt.Sprintf("voice %d", n), Kind: volumetric.KindAudio, Mode: volumetric.ModeAlternatives,
			Codec: volumetric.Codec{MIMEType: "audio/opus", ClockRate: 48_000, Channels: 2},
			Tiles: make([]volumetric.Tile, 1), Qualities: make([]volumetric.QualityLevel, 1),
		}
		if err := i.Send(&signal.Publish{Publication: publication}); err != nil {
			break
		}
		waiting, cancel := context.WithTimeout(ctx, answerPatience)
		offer, err := i.Offer(waiting)
		cancel()
		if ctx.Err() != nil {
			return taken, ctx.Err()
		}
		if err != nil {
			s.check.progress.Say("  no offer after answer %d: %v", taken, err)
			break
		}
		if i.Answer(offer, portsOf(bystander, n*candidatesPerAnswer)...) != nil {
			break
		}
		taken++
		if i.Send(&signal.Unpublish{Publication: publication.Name}) != nil {
			break
		}
	}
	return taken, lab.Pause(ctx, s.check.options.atMost(checkTime))
}

// spoofChecks sends valid checks with the bystander's source address.
func spoofChecks(ctx context.Context, s *stage, bystander *namespace) (int, error) {
	// The server also sends checks to the sources of received checks if the intruder names no candidate.
	i, err := s.nameCandidates(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer i.Close()
	spoof, err := s.attacker.newSpoofer()
	if err != nil {
		return 0, err
	}
	defer spoof.close()
	sources := portsOf(bystander, 0)
	for _, from := range sources {
		if err := spoof.send(from, s.server.media(), i.Request()); err != nil {
			return 0, err
		}
	}
	return len(sources), lab.Pause(ctx, s.check.options.atMost(checkTime))
}

// silentTime is the time for which the server may continue to send media to a silent receiver (RFC 7675 has 30 s; an
// SFU's client sends several times a second). silenceWatched is the time of observation after that.
const (
	silentTime     = 6 * time.Second
	silenceWatched = 40 * time.Second
)

// attackSilence drops all packets that leave a receiver's host. The server's host keeps the receiver's link address.
func attackSilence(ctx context.Context, c *check) ([]claim.Line, error) {
	s, err := newStage(ctx, c, stageOptions{})
	if err != nil {
		return nil, err
	}
	defer s.close()
	host, err := s.network.host("silent")
	if err != nil {
		return nil, err
	}
	p, err := s.attend(ctx, host, testbed.Part{Identity: "erin", Receive: true}, 0)
	if err != nil {
		return nil, err
	}
	if err := s.flowing(ctx, p); err != nil {
		return nil, err
	}
	t, err := host.newTap()
	if err != nil {
		return nil, err
	}
	var silent time.Time
	var media, others, allowed int64
	o, err := s.measure(ctx, 0, func(ctx context.Context) error {
		if err := host.ip(fmt.Sprintf("route add blackhole %v/32", s.server.host.address)); err != nil {
			return err
		}
		silent, allowed = time.Now(), t.media.Load()
		if err := lab.Pause(ctx, silentTime); err != nil {
			return err
		}
		media, others = t.media.Load(), t.datagrams.Load()
		allowed = media - allowed
		err := lab.Pause(ctx, c.options.atMost(silenceWatched))
		others = t.datagrams.Load() - others
		media = t.media.Load() - media
		return err
	})
	t.close()
	if err != nil {
		return nil, err
	}
	last := time.Unix(0, t.lastMedia.Load()).Sub(silent)
	lines := []claim.Line{
		o.survival(""),
		claim.Exactly("datagrams of media toward the silent receiver after 6 s", media, "", 0),
		claim.Information("datagrams of media toward it before that", float64(allowed), ""),
		claim.Information("other datagrams toward it after 6 s", float64(others-media), ""),
		claim.Information("the last datagram of media", last.Seconds(), "s"),
	}
	return append(lines, o.whole("")...), nil
}
