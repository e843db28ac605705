package edge

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/volsfu/volsfu/internal/netfn/wire"
)

// namePattern is the form of names, which are parts of file names and labels of metrics.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

// validate checks what a single value cannot show. It returns the key of the error.
func (c *Config) validate() (at string, err error) {
	switch {
	case c.Name == "":
		return "name", errMissing
	case !validName(c.Name):
		return "name", errName(c.Name)
	case c.Peer == "":
		return "peer", errMissing
	case !validName(c.Peer):
		return "peer", errName(c.Peer)
	case c.Peer == c.Name:
		return "peer", fmt.Errorf("the other edge has the name %q of this edge, expected another name", c.Peer)
	case c.KeyFile == "":
		return "key-file", errMissing
	case !filepath.IsAbs(c.State):
		return "state", fmt.Errorf("the folder %q is relative, expected an absolute path", c.State)
	case c.Send == nil && c.Receive == nil:
		return "", errors.New("neither send nor receive is configured, expected at least one of them")
	}
	if c.MetricsListen != "" {
		if err := validListen(c.MetricsListen); err != nil {
			return "metrics-listen", err
		}
	}
	if at, err := c.validateController(); err != nil {
		return at, err
	}
	if at, err := c.validatePaths(); err != nil {
		return at, err
	}
	if at, err := c.validateReceive(); err != nil {
		return at, err
	}
	return c.validateSend()
}

var errMissing = errors.New("the key is missing")

func errName(name string) error {
	return fmt.Errorf("the name is %q, expected 1 to %d letters, digits, hyphens and underscores, with a letter or "+
		"digit first", name, maxName)
}

func validName(name string) bool { return len(name) <= maxName && namePattern.MatchString(name) }

func validListen(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("the address is %q, expected host:port, such as 127.0.0.1:9091", address)
	}
	return nil
}

func (c *Config) validateController() (string, error) {
	if c.Controller == nil {
		return "", nil
	}
	address, err := url.Parse(c.Controller.URL)
	switch {
	case c.Controller.URL == "":
		return "controller.url", errMissing
	case err != nil || address.Scheme != "https" || address.Host == "":
		return "controller.url", fmt.Errorf("the address is %q, expected https://host:port", c.Controller.URL)
	case c.Controller.TokenFile == "":
		return "controller.token-file", errMissing
	}
	return "", nil
}

func (c *Config) validatePaths() (string, error) {
	if len(c.Paths) == 0 {
		return "paths", errors.New("there is no path, expected 1 to 8")
	}
	if len(c.Paths) > wire.MaxPaths {
		return "paths", fmt.Errorf("there are %d paths, the limit is %d", len(c.Paths), wire.MaxPaths)
	}
	for i, p := range c.Paths {
		at := fmt.Sprintf("paths[%d]", i)
		if key, err := p.validate(); err != nil {
			return at + key, err
		}
		for _, other := range c.Paths[:i] {
			switch {
			case other.Name == p.Name:
				return at + ".name", fmt.Errorf("two paths have the name %q, expected a name for each", p.Name)
			case other.Interface == p.Interface:
				return at + ".interface", fmt.Errorf("the interface %q is that of the path %q already, expected an "+
					"interface for each path", p.Interface, other.Name)
			case other.Local == p.Local:
				return at + ".local", fmt.Errorf("the address %s is that of the path %q already", p.Local, other.Name)
			case other.Remote == p.Remote:
				return at + ".remote", fmt.Errorf("the address %s is that of the path %q already", p.Remote, other.Name)
			}
		}
	}
	return "", nil
}

func (p *Path) validate() (string, error) {
	switch {
	case p.Name == "":
		return ".name", fmt.Errorf("the path has no name: %w", errMissing)
	case !validName(p.Name):
		return ".name", errName(p.Name)
	case slices.Contains([]CopiesMode{CopiesAuto, CopiesOff, CopiesAll}, CopiesMode(p.Name)):
		return ".name", fmt.Errorf("the name %q is a mode of copies, expected another name", p.Name)
	case p.Interface == "":
		return ".interface", errMissing
	case len(p.Interface) > maxInterface:
		return ".interface", fmt.Errorf("the name %q has %d bytes, the limit is %d", p.Interface, len(p.Interface),
			maxInterface)
	case !p.Local.IsValid():
		return ".local", errMissing
	case !p.Remote.IsValid():
		return ".remote", errMissing
	case p.Local.Is4() != p.Remote.Is4():
		return ".remote", fmt.Errorf("the addresses %s and %s are of different versions of IP", p.Local, p.Remote)
	case p.Local == p.Remote:
		return ".remote", fmt.Errorf("both ends of the path have the address %s", p.Local)
	case p.MTU != 0 && p.Local.Is6() && p.MTU < minMTU6:
		return ".mtu", fmt.Errorf("the MTU is %d bytes, IPv6 needs at least %d", p.MTU, minMTU6)
	}
	return "", nil
}

func validFormat(format string) error {
	if format != FormatEncapsulated && format != FormatStamped {
		return fmt.Errorf("the format is %q, expected %s or %s", format, FormatEncapsulated, FormatStamped)
	}
	return nil
}

func (c *Config) validateReceive() (string, error) {
	if c.Receive == nil {
		return "", nil
	}
	if err := validFormat(c.Receive.Format); err != nil {
		return "receive.format", err
	}
	if len(c.Receive.Inner) == 0 || len(c.Receive.Inner) > maxInner {
		return "receive.inner", fmt.Errorf("there are %d prefixes, expected 1 to %d", len(c.Receive.Inner), maxInner)
	}
	return "", nil
}

func (c *Config) validateSend() (string, error) {
	if c.Send == nil {
		return "", nil
	}
	if err := validFormat(c.Send.Format); err != nil {
		return "send.format", err
	}
	if len(c.Send.Rules) == 0 || len(c.Send.Rules) > maxRules {
		return "send.rules", fmt.Errorf("there are %d rules, expected 1 to %d", len(c.Send.Rules), maxRules)
	}
	for i := range c.Send.Rules {
		rule, at := &c.Send.Rules[i], fmt.Sprintf("send.rules[%d]", i)
		if key, err := c.validateRule(rule); err != nil {
			return at + key, err
		}
		if slices.ContainsFunc(c.Send.Rules[:i], func(other Rule) bool { return other.Name == rule.Name }) {
			return at + ".name", fmt.Errorf("two rules have the name %q, expected a name for each", rule.Name)
		}
	}
	return "", nil
}

func (c *Config) validateRule(rule *Rule) (string, error) {
	switch {
	case rule.Name == "":
		return ".name", fmt.Errorf("the rule has no name: %w", errMissing)
	case !validName(rule.Name):
		return ".name", errName(rule.Name)
	case !rule.To.IsValid():
		return ".to", errMissing
	case rule.To.Overlaps(netip.MustParsePrefix("224.0.0.0/4")) && rule.To.Bits() >= 4,
		rule.To.Overlaps(netip.MustParsePrefix("ff00::/8")) && rule.To.Bits() >= 8:
		return ".to", fmt.Errorf("the prefix %s is multicast, which is never copied", rule.To)
	case c.Send.Format != FormatEncapsulated && !rule.To.Addr().Is4():
		return ".to", fmt.Errorf("the prefix %s is of IPv6, the format %s can carry IPv4 only", rule.To, c.Send.Format)
	case rule.Ports.First != 0 && rule.Protocol == 0:
		return ".ports", errors.New("ports need a protocol, udp or tcp")
	case rule.Ports.First != 0 && rule.Protocol != protocols["tcp"] && rule.Protocol != protocols["udp"]:
		return ".ports", fmt.Errorf("rules select ports of udp and tcp only, the protocol is %d", rule.Protocol)
	}
	if _, err := c.mask(rule.Copies); err != nil {
		return ".copies", err
	}
	return "", nil
}
