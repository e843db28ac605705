package topology

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

// maxClockOffset is far beyond the error of a clock that was never set.
const maxClockOffset = 1000 * time.Hour

// names matches valid names, which become parts of keys, of environment variables and of the command line.
var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$`)

const expectedName = "expected a name of at most 32 letters, digits, dots, hyphens and underscores " +
	"that begins with a letter or a digit"

func validName(name string) bool { return names.MatchString(name) }

// validate reports the first invalid value of a host, whose place in the file is key.
func (h Host) validate(key, name string) error {
	if !validName(name) {
		return fmt.Errorf("%w: %s: %s", ErrTopology, key, expectedName)
	}
	if h.ClockOffset.Abs() > maxClockOffset {
		return fmt.Errorf("%w: %s.clock_offset is %v, expected at most %v either way", ErrTopology, key, h.ClockOffset,
			maxClockOffset)
	}
	for _, name := range sortedKeys(h.Sysctls) {
		if !strings.HasPrefix(name, "net.") || strings.ContainsAny(name, "/ ") || strings.Contains(name, "..") {
			return fmt.Errorf("%w: %s.sysctls has %q, expected names such as net.ipv4.tcp_ecn", ErrTopology, key, name)
		}
	}
	return nil
}

// validate reports the first invalid value of one direction of a link, whose place in the file is key.
func (d *Direction) validate(key string) error {
	if err := d.Config.Validate(); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrTopology, key, err)
	}
	if d.Trace != nil {
		if err := d.Trace.Validate(); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrTopology, key, err)
		}
		if unlimited(&d.Config) {
			return errUnlimited(key)
		}
	}
	last := time.Duration(0)
	for i := range d.Schedule {
		c := &d.Schedule[i]
		if c.At <= last {
			return fmt.Errorf("%w: %s.schedule[%d].at is %v, expected a time after %v", ErrTopology, key, i, c.At, last)
		}
		last = c.At
		if err := c.Config.Validate(); err != nil {
			return fmt.Errorf("%w: %s.schedule[%d]: %w", ErrTopology, key, i, err)
		}
		if d.Trace != nil && unlimited(&c.Config) {
			return errUnlimited(fmt.Sprintf("%s.schedule[%d]", key, i))
		}
	}
	if d.Repeat < 0 || d.Repeat > 0 && (len(d.Schedule) == 0 || d.Repeat <= last) {
		return fmt.Errorf("%w: %s.repeat is %v, expected a time after the last change of a schedule, which is at %v",
			ErrTopology, key, d.Repeat, last)
	}
	return nil
}

// unlimited reports whether the queue may grow without limit, which is allowed for links without a rate only.
func unlimited(c *netem.Config) bool { return c.QueueBytes == 0 && c.QueueDelay == 0 }

func errUnlimited(key string) error {
	return fmt.Errorf("%w: %s: queue has no limit, expected one in bytes or time because the rate changes", ErrTopology,
		key)
}

// validatePaths reports the first invalid path.
func (t *Topology) validatePaths() error {
	parallels := make(map[[2]string]int)
	for i, p := range t.Paths {
		key := fmt.Sprintf("paths[%d]", i)
		for _, end := range []struct{ key, host string }{{"from", p.From}, {"to", p.To}} {
			if _, ok := t.Hosts[end.host]; !ok {
				return fmt.Errorf("%w: %s.%s is %q, expected one of the hosts: %s", ErrTopology, key, end.key, end.host,
					strings.Join(sortedKeys(t.Hosts), ", "))
			}
		}
		if p.From == p.To {
			return fmt.Errorf("%w: %s leads from %s to itself, expected two hosts", ErrTopology, key, p.From)
		}
		if len(p.Through) > maxPassages {
			return fmt.Errorf("%w: %s.through has %d links, expected at most %d", ErrTopology, key, len(p.Through),
				maxPassages)
		}
		for j, passage := range p.Through {
			if _, ok := t.Links[passage.Link]; !ok {
				return fmt.Errorf("%w: %s.through[%d] is %q, expected one of the links: %s", ErrTopology, key, j,
					passage.Link, strings.Join(sortedKeys(t.Links), ", "))
			}
		}
		pair := [2]string{min(p.From, p.To), max(p.From, p.To)}
		if parallels[pair]++; parallels[pair] > maxParallel {
			return fmt.Errorf("%w: %s is one of more than %d paths between %s and %s", ErrTopology, key, maxParallel,
				p.From, p.To)
		}
	}
	return nil
}
