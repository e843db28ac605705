package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/volsfu/volsfu/internal/netem"
)

// ErrFile reports an invalid file of hosts.
var ErrFile = errors.New("invalid file of hosts")

// File is a file of hosts.
type File struct {
	// Key is the file with the key of the lab. Read makes the path relative to the folder of the file of hosts.
	Key string `yaml:"key"`
	// Clocks is the way to compare the clocks of the hosts: Estimated or PTP.
	Clocks Clocks `yaml:"clocks"`
	// Link describes the network between the hosts.
	Link Link `yaml:"link"`
	// Hosts are the hosts by name, Roles the host of each role.
	Hosts map[string]Host   `yaml:"hosts"`
	Roles map[string]string `yaml:"roles"`
}

// Host is a host with an agent.
type Host struct {
	// Agent is the HOST:PORT of the agent.
	Agent string `yaml:"agent"`
	// Address is the IP address on which the programs of the host listen, and to which other hosts connect. Without an
	// address, it is that of the agent.
	Address string `yaml:"address"`
}

// Clocks is a way to compare clocks.
type Clocks string

// The ways to compare clocks.
const (
	// Estimated: from round trips between the controller and each agent.
	Estimated Clocks = "estimated"
	// PTP: all hosts have the same clock, because of ptp4l. The estimate is a check.
	PTP Clocks = "ptp"
)

// LinkKind is the origin of the link's properties.
type LinkKind string

// The kinds of links.
const (
	// None: the network between the hosts has no stated properties.
	None LinkKind = "none"
	// Given: the network has the stated properties. Emulated: something outside the lab emulates them.
	Given    LinkKind = "given"
	Emulated LinkKind = "emulated"
)

// Link describes the network between the hosts, which the lab does not change.
type Link struct {
	Kind LinkKind
	// Profile has the properties in the syntax of package netem, and Config is the parsed form.
	Profile string
	Config  netem.Config
}

// UnmarshalYAML reads the word none, or a map with one key and a profile.
func (l *Link) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		if node.Value != string(None) {
			return fmt.Errorf("link: expected none, or given or emulated with a profile, got %q", node.Value)
		}
		*l = Link{Kind: None}
		return nil
	}
	var entry map[LinkKind]string
	if err := node.Decode(&entry); err != nil {
		return fmt.Errorf("link: expected none, or given or emulated with a profile: %w", err)
	}
	for kind, profile := range entry {
		if len(entry) != 1 || kind != Given && kind != Emulated {
			return fmt.Errorf("link: expected none, given or emulated, got %q", kind)
		}
		config, err := netem.ParseProfile(profile)
		if err != nil {
			return fmt.Errorf("link: %s: %w", kind, err)
		}
		*l = Link{kind, profile, config}
	}
	return nil
}

// String describes the link for a report.
func (l Link) String() string {
	switch l.Kind {
	case Given:
		return "given, with " + l.Profile + " as stated in the file of hosts"
	case Emulated:
		return "emulated outside the lab, with " + l.Profile + " as stated in the file of hosts"
	}
	return "the network of the hosts as it is"
}

// maxHosts bounds the hosts of a file.
const maxHosts = 32

// Parse reads a file. Unknown keys are errors. The error wraps ErrFile.
func Parse(text []byte) (*File, error) {
	f := &File{Clocks: Estimated, Link: Link{Kind: None}}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	if f.Clocks != Estimated && f.Clocks != PTP {
		return nil, fmt.Errorf("%w: clocks: expected %s or %s, got %q", ErrFile, Estimated, PTP, f.Clocks)
	}
	if f.Key == "" {
		return nil, fmt.Errorf("%w: key: expected the file of vollab agent key", ErrFile)
	}
	if n := len(f.Hosts); n < 1 || n > maxHosts {
		return nil, fmt.Errorf("%w: hosts has %d entries, expected 1 to %d", ErrFile, n, maxHosts)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Hosts)) {
		h := f.Hosts[name]
		agent, _, err := net.SplitHostPort(h.Agent)
		if err != nil {
			return nil, fmt.Errorf("%w: hosts.%s.agent: expected HOST:PORT, got %q", ErrFile, name, h.Agent)
		}
		if h.Address == "" {
			h.Address = agent
		}
		if _, err := netip.ParseAddr(h.Address); err != nil {
			return nil, fmt.Errorf("%w: hosts.%s.address: expected an IP address, got %q", ErrFile, name, h.Address)
		}
		f.Hosts[name] = h
	}
	for _, role := range slices.Sorted(maps.Keys(f.Roles)) {
		if _, known := f.Hosts[f.Roles[role]]; !known {
			return nil, fmt.Errorf("%w: roles.%s: the host %q is not under hosts", ErrFile, role, f.Roles[role])
		}
	}
	return f, nil
}

// Read reads a file by its name.
func Read(name string) (*File, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if !filepath.IsAbs(f.Key) {
		f.Key = filepath.Join(filepath.Dir(name), f.Key)
	}
	return f, nil
}

// Check reports a role without a host. The error wraps ErrFile.
func (f *File) Check(roles []string) error {
	for _, role := range roles {
		if f.Roles[role] == "" {
			return fmt.Errorf("%w: roles: no host for the role %s; the experiment has the roles %s", ErrFile, role,
				strings.Join(roles, ", "))
		}
	}
	return nil
}

// Refusal returns the reason why a cell of an experiment cannot run over the link, empty if the cell can. config is the
// link that the cell emulates on one machine: its delay and loss must be those of the network.
func (l Link) Refusal(config netem.Config) string {
	const rounding = 10 * time.Microsecond
	if delay := config.Delay - l.Config.Delay; delay.Abs() <= rounding && config.Loss == l.Config.Loss {
		return ""
	}
	return fmt.Sprintf("the cell is for a link with a delay of %v and a loss of %g %%, and the link between the hosts "+
		"is %s", config.Delay, 100*config.Loss, l)
}
