package edge

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/netfn/edge/bpf"
	"github.com/volsfu/volsfu/internal/netfn/paths"
	"github.com/volsfu/volsfu/internal/netfn/trigger"
	"github.com/volsfu/volsfu/internal/netfn/wire"
)

// reportFor is how long a report describes the present.
const reportFor = time.Second

// sender is the sending side of an edge: what its maps contain and why. The mutex of the edge guards it.
type sender struct {
	config  *Config
	log     *zap.Logger
	objects *bpf.SenderObjects
	written bpf.SenderConfig
	rules   []*senderRule
	// paths has what the map of paths contains, and available those that can carry packets.
	paths     [wire.MaxPaths]bpf.SenderPath
	available paths.Set
	// softChecksums are the available paths whose interfaces do not compute checksums.
	softChecksums paths.Set
	// numbers has the next number of each flow, as it was at the last step, if counted. flows and next are buffers for
	// keys and values of the map.
	numbers     [bpf.MaxRules * bpf.FlowsPerRule]uint32
	counted     bool
	flows, next []uint32
}

// senderRule is a rule of the sender.
type senderRule struct {
	*Rule
	index    int
	copies   Copies
	selector *paths.Selector
	trouble  *trigger.Trouble
	// packets are the packets that the rule has numbered since the start of the process.
	packets uint64
	written bpf.SenderRule

	triggered bool
	cause     trigger.Cause // of the last start
	reason    string
	since     time.Time
	// report is the last report of the rule, nil before the first, and reported its time.
	report   *wire.Report
	reported time.Duration
}

// newSender loads the sender and fills its maps from the configuration. With adopted maps, the lease and the epoch
// remain, so that packets continue to be copied.
func newSender(c *Config, p pins, log *zap.Logger) (*sender, error) {
	objects, err := loadSender(p)
	if err != nil {
		return nil, err
	}
	s := &sender{config: c, log: log, objects: objects}
	s.flows, s.next = make([]uint32, len(s.numbers)), make([]uint32, len(s.numbers))
	if err := s.fill(); err != nil {
		return nil, errors.Join(err, objects.Close())
	}
	return s, nil
}

func (s *sender) fill() error {
	if err := s.objects.SendConfig.Lookup(uint32(0), &s.written); err != nil {
		return fmt.Errorf("read the map %s: %w", s.objects.SendConfig, err)
	}
	if s.written.Epoch == 0 {
		s.written.Epoch = uint16(1 + rand.N(1<<16-1))
	}
	s.written.Mark, s.written.Port = bpf.Mark, s.config.Port
	if err := putAt(s.objects.SendConfig, 0, &s.written); err != nil {
		return err
	}
	prefixes := make([]netip.Prefix, 0, len(s.config.Send.Rules))
	for i := range s.config.Send.Rules {
		rule := &s.config.Send.Rules[i]
		prefixes = append(prefixes, rule.To)
		state := &senderRule{Rule: rule, index: i, copies: rule.Copies, since: time.Now(),
			trouble:  trigger.NewTrouble(),
			selector: paths.NewSelector(paths.Config{Paths: len(s.config.Paths), Deadline: rule.Deadline})}
		s.rules = append(s.rules, state)
		if err := s.adoptRule(state); err != nil {
			return err
		}
	}
	return syncMap(s.objects.Prefixes, bpf.RulePrefixes(prefixes))
}

// adoptRule reads a rule from the map. If an earlier process has copied its packets, copies start on all paths: the
// reason of the copies may last, and paths that do not help leave within 300 ms.
func (s *sender) adoptRule(rule *senderRule) error {
	if err := s.objects.Rules.Lookup(uint32(rule.index), &rule.written); err != nil {
		return fmt.Errorf("read the map %s: %w", s.objects.Rules, err)
	}
	if paths.Set(rule.written.Set).Len() > 1 {
		rule.start(trigger.Adopted, monotonic())
	}
	return nil
}

// setPath writes a path as the host has it.
func (s *sender) setPath(index int, h hostPath) error {
	p := &s.config.Paths[index]
	entry := bpf.SenderPath{Local: p.Local.As16(), Remote: p.Remote.As16(), Mtu: uint16(min(h.mtu, maxMTU)), Version: 4,
		Source: h.source, Destination: h.nextHop}
	if p.Local.Is6() {
		entry.Version = 6
	}
	if h.ethernet {
		entry.Ether = 1
	}
	mask := paths.Set(1 << index)
	s.available &^= mask
	s.softChecksums &^= mask
	if h.state == PathUp {
		entry.Ifindex = uint32(h.ifindex)
		s.available |= mask
		if !h.checksums {
			s.softChecksums |= mask
		}
	}
	if err := s.setCut(); err != nil {
		return err
	}
	if s.paths[index] == entry {
		return nil
	}
	if err := putAt(s.objects.Paths, index, &entry); err != nil {
		return err
	}
	s.paths[index] = entry
	return nil
}

// setCut lets UDP super-packets be cut before they are copied if a path cannot carry them.
func (s *sender) setCut() error {
	var cut uint8
	if s.softChecksums != 0 {
		cut = 1
	}
	if s.written.Cut == cut {
		return nil
	}
	s.written.Cut = cut
	return putAt(s.objects.SendConfig, 0, &s.written)
}

// setLease writes until when packets may be copied. A lease that ends in the past means plain packets.
func (s *sender) setLease(lease time.Duration) error {
	if s.written.LeaseNs == uint64(lease) {
		return nil
	}
	s.written.LeaseNs = uint64(lease)
	return putAt(s.objects.SendConfig, 0, &s.written)
}

// setSegmenter writes the interface of the segmenter, 0 for none.
func (s *sender) setSegmenter(ifindex int) error {
	s.written.Segmenter = uint32(ifindex)
	return putAt(s.objects.SendConfig, 0, &s.written)
}

// leased reports whether packets are copied at a time.
func (s *sender) leased(now time.Duration) bool { return now < time.Duration(s.written.LeaseNs) }

// hello returns the body of a hello.
func (s *sender) hello(now time.Duration) wire.Hello {
	h := wire.Hello{Epoch: s.written.Epoch, Sent: microseconds(now)}
	for _, rule := range s.rules {
		h.Deadlines = append(h.Deadlines, rule.Deadline)
	}
	return h
}

// report takes the body of a report.
func (s *sender) report(body []byte, now time.Duration) error {
	var r wire.Report
	if err := r.UnmarshalBinary(body); err != nil {
		return err
	}
	if int(r.Rule) >= len(s.rules) {
		return fmt.Errorf("%w: rule %d, this edge has %d rules", wire.ErrReport, r.Rule, len(s.rules))
	}
	if r.Epoch != s.written.Epoch {
		// A report about the packets of an earlier sender.
		return nil
	}
	rule := s.rules[r.Rule]
	rule.report, rule.reported = &r, now
	rule.trouble.Apply(&r, now)
	rule.selector.Apply(&r, now)
	return nil
}

// step lets every rule decide, and writes what has changed.
func (s *sender) step(now time.Duration) error {
	if err := s.count(); err != nil {
		return err
	}
	for _, rule := range s.rules {
		rule.trouble.Sent(rule.packets, now)
		if err := s.decide(rule, now); err != nil {
			return err
		}
	}
	return nil
}

// count adds the packets that the rules have numbered since the last step.
func (s *sender) count() error {
	var cursor ebpf.MapBatchCursor
	n, err := s.objects.Numbers.BatchLookup(&cursor, s.flows, s.next, nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("read the map %s: %w", s.objects.Numbers, err)
	}
	for i, flow := range s.flows[:n] {
		if rule := int(flow) / bpf.FlowsPerRule; s.counted && rule < len(s.rules) {
			s.rules[rule].packets += uint64(s.next[i] - s.numbers[flow])
		}
		s.numbers[flow] = s.next[i]
	}
	s.counted = true
	return nil
}

// decide writes the set of a rule.
func (s *sender) decide(rule *senderRule, now time.Duration) error {
	rule.selector.Available(s.available, now)
	if cause := rule.trouble.Step(now); cause != trigger.Nothing && rule.copies.Mode == CopiesAuto {
		rule.start(cause, now)
	}
	decision := rule.selector.Step(now)
	s.explain(rule)
	entry := bpf.SenderRule{PortLast: 65535, Mark: rule.Mark, Protocol: rule.Protocol, Dscp: bpf.AnyDSCP,
		Format: formats[s.config.Send.Format]}
	if rule.Ports.First != 0 {
		entry.PortFirst, entry.PortLast = rule.Ports.First, rule.Ports.Last
	}
	if rule.Mark != 0 {
		entry.MarkMask = 1<<32 - 1
	}
	if rule.DSCP >= 0 {
		entry.Dscp = uint8(rule.DSCP)
	}
	switch rule.copies.Mode {
	case CopiesOff:
		entry.Format = bpf.FormatPlain
	case CopiesAuto:
		entry.Set, entry.Probes, entry.Divisor = uint8(decision.Set), uint8(decision.Probes), decision.Divisor
	default:
		// The configuration and Set accept known names only.
		mask, err := s.config.mask(rule.copies)
		if err != nil {
			return err
		}
		entry.Set = mask & uint8(s.available)
		if entry.Set == 0 {
			entry.Set = mask
		}
	}
	entry.Primary = s.primary(entry.Set)
	if entry == rule.written {
		return nil
	}
	if entry.Set != rule.written.Set || entry.Format != rule.written.Format {
		rule.since = time.Now()
	}
	if err := putAt(s.objects.Rules, rule.index, &entry); err != nil {
		return err
	}
	rule.written = entry
	return nil
}

// start starts copies.
func (r *senderRule) start(cause trigger.Cause, now time.Duration) {
	r.cause = cause
	r.selector.Start(now)
}

// primary returns the primary path: the first of the configuration that is available, preferably in the set.
func (s *sender) primary(set uint8) uint8 {
	for _, candidates := range []uint8{set & uint8(s.available), uint8(s.available), set} {
		for i := range uint8(wire.MaxPaths) {
			if candidates&(1<<i) != 0 {
				return i
			}
		}
	}
	return 0
}

// explain keeps the reason of the last change of the selector's set, and logs all.
func (s *sender) explain(rule *senderRule) {
	for _, change := range rule.selector.Changes() {
		if rule.copies.Mode != CopiesAuto || change.Path >= len(s.config.Paths) {
			continue
		}
		verb := "left"
		if change.Joined {
			verb = "joined"
		}
		rule.reason = fmt.Sprintf("path %s %s the set: %s", s.config.Paths[change.Path].Name, verb, rule.why(change))
		s.log.Info("the set of a rule has changed", zap.String("rule", rule.Name), zap.String("reason", rule.reason))
	}
}

// why returns the reason of a change as a clause. The reason of a start is that of the trigger.
func (r *senderRule) why(change paths.Change) string {
	if change.Reason == paths.ReasonStarted {
		return r.cause.String()
	}
	return change.Reason.String()
}

// set carries out an order for one rule. Names have been checked.
func (s *sender) set(rule *senderRule, o Order, now time.Duration) {
	if o.Copies != nil {
		rule.copies = *o.Copies
		rule.reason = "ordered: " + o.Copies.String()
	}
	switch o.Trigger {
	case TriggerStart:
		rule.triggered = true
		rule.start(trigger.Ordered, now)
	case TriggerStop:
		rule.triggered = false
		rule.selector.Stop(now)
	}
}

// close closes the programs and maps, which live on as long as they are pinned.
func (s *sender) close() error { return s.objects.Close() }
