package edge

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxFileBytes bounds a configuration file. A file with 8 paths, 16 rules and comments has about 4 kB.
const maxFileBytes = 1 << 20

// Load reads and validates a configuration file. It does not look at the host. The error wraps ErrConfig if the file
// could be read.
func Load(file string) (*Config, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the configuration of the edge: %w", err)
	}
	defer opened.Close()
	data, err := io.ReadAll(io.LimitReader(opened, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the configuration of the edge: %w", err)
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("%s: %w: the file has more than %d bytes", file, ErrConfig, maxFileBytes)
	}
	return Parse(file, data)
}

// Parse is Load for the text of a file. The path is for errors.
func Parse(path string, data []byte) (*Config, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, more yaml.Node
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrConfig, err)
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w: the file has more than one document", path, ErrConfig)
	}
	root := &yaml.Node{Kind: yaml.MappingNode, Line: 1}
	if len(document.Content) > 0 && !isNull(document.Content[0]) {
		root = document.Content[0]
	}
	r := &reader{path: path, lines: map[string]int{}}
	c := &Config{Port: defaultPort, State: defaultState}
	if err := r.config(c, root); err != nil {
		return nil, err
	}
	if at, err := c.validate(); err != nil {
		return nil, r.fail(r.line(at), at, err)
	}
	return c, nil
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!null" }

// reader reads the nodes of one file.
type reader struct {
	path string
	// lines has the line of every key, for errors found later.
	lines map[string]int
}

// line returns the line of a key, or that of the section in which the key is missing.
func (r *reader) line(at string) int {
	for {
		if line, ok := r.lines[at]; ok || at == "" {
			return line
		}
		at = at[:max(0, strings.LastIndexByte(at, '.'))]
	}
}

// field is a key of a mapping with the function that reads the key's value.
type field struct {
	name string
	read func(at string, node *yaml.Node) error
}

func (r *reader) config(c *Config, node *yaml.Node) error {
	return r.mapping("", node, []field{
		{"name", r.text(&c.Name)},
		{"peer", r.text(&c.Peer)},
		{"key-file", r.text(&c.KeyFile)},
		{"port", r.number(&c.Port, 1, 65535)},
		{"state", r.text(&c.State)},
		{"metrics-listen", r.text(&c.MetricsListen)},
		{"controller", func(at string, node *yaml.Node) error {
			c.Controller = &Controller{}
			return r.mapping(at, node, []field{
				{"url", r.text(&c.Controller.URL)},
				{"token-file", r.text(&c.Controller.TokenFile)},
			})
		}},
		{"paths", func(at string, node *yaml.Node) error {
			return readList(r, at, node, &c.Paths, r.onePath)
		}},
		{"send", func(at string, node *yaml.Node) error {
			c.Send = &Send{Format: FormatEncapsulated}
			return r.mapping(at, node, []field{
				{"format", r.text(&c.Send.Format)},
				{"rules", func(at string, node *yaml.Node) error {
					return readList(r, at, node, &c.Send.Rules, r.oneRule)
				}},
			})
		}},
		{"receive", func(at string, node *yaml.Node) error {
			c.Receive = &Receive{Format: FormatEncapsulated}
			return r.mapping(at, node, []field{
				{"format", r.text(&c.Receive.Format)},
				{"inner", func(at string, node *yaml.Node) error {
					return readList(r, at, node, &c.Receive.Inner, r.prefix)
				}},
			})
		}},
	})
}

func (r *reader) onePath(p *Path, at string, node *yaml.Node) error {
	return r.mapping(at, node, []field{
		{"name", r.text(&p.Name)},
		{"interface", r.text(&p.Interface)},
		{"local", r.address(&p.Local)},
		{"remote", r.address(&p.Remote)},
		{"mtu", r.number(&p.MTU, minMTU4, maxMTU)},
	})
}

func (r *reader) oneRule(rule *Rule, at string, node *yaml.Node) error {
	rule.DSCP, rule.Deadline, rule.Copies = -1, defaultDeadline, Copies{Mode: CopiesAuto}
	return r.mapping(at, node, []field{
		{"name", r.text(&rule.Name)},
		{"to", func(at string, node *yaml.Node) error { return r.prefix(&rule.To, at, node) }},
		{"protocol", r.protocol(&rule.Protocol)},
		{"ports", r.ports(&rule.Ports)},
		{"dscp", r.number(&rule.DSCP, 0, 63)},
		{"mark", r.number(&rule.Mark, 1, 1<<32-1)},
		{"deadline", r.duration(&rule.Deadline)},
		{"copies", r.copies(&rule.Copies)},
	})
}

// mapping reads the fields of a mapping. Every key must be that of a field, and occur once.
func (r *reader) mapping(at string, node *yaml.Node, fields []field) error {
	node = resolve(node)
	r.lines[at] = node.Line
	if node.Kind != yaml.MappingNode {
		return r.fail(node.Line, at, fmt.Errorf("%w, expected keys and values", errValue(node)))
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], resolve(node.Content[i+1])
		below := name.Value
		if at != "" {
			below = at + "." + name.Value
		}
		known := slices.IndexFunc(fields, func(f field) bool { return f.name == name.Value })
		if known < 0 {
			return r.fail(name.Line, below, fmt.Errorf("the key is unknown, expected one of %s", namesOfFields(fields)))
		}
		if seen[name.Value] {
			return r.fail(name.Line, below, errors.New("the key occurs twice"))
		}
		seen[name.Value] = true
		r.lines[below] = value.Line
		if isNull(value) {
			return r.fail(name.Line, below, errors.New("the key has no value"))
		}
		if err := fields[known].read(below, value); err != nil {
			return err
		}
	}
	return nil
}

// resolve returns the node that an alias stands for.
func resolve(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

func namesOfFields(fields []field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return strings.Join(names, ", ")
}

// readList reads a list into target.
func readList[T any](r *reader, at string, node *yaml.Node, target *[]T,
	read func(item *T, at string, node *yaml.Node) error) error {
	if node.Kind != yaml.SequenceNode {
		return r.fail(node.Line, at, fmt.Errorf("%w, expected a list", errValue(node)))
	}
	*target = make([]T, len(node.Content))
	for i, item := range node.Content {
		below := fmt.Sprintf("%s[%d]", at, i)
		item = resolve(item)
		r.lines[below] = item.Line
		if err := read(&(*target)[i], below, item); err != nil {
			return err
		}
	}
	return nil
}

// errValue describes a value that cannot be used.
func errValue(node *yaml.Node) error {
	switch node.Kind {
	case yaml.MappingNode:
		return errors.New("the value has keys")
	case yaml.SequenceNode:
		return errors.New("the value is a list")
	default:
		return fmt.Errorf("the value is %q", node.Value)
	}
}

// scalar returns a field that parses a single value. The error of parse is the expected form.
func (r *reader) scalar(parse func(text string) error) func(at string, node *yaml.Node) error {
	return func(at string, node *yaml.Node) error {
		if node.Kind != yaml.ScalarNode || node.ShortTag() == "!!binary" {
			return r.fail(node.Line, at, fmt.Errorf("%w, expected a single value", errValue(node)))
		}
		if err := parse(node.Value); err != nil {
			return r.fail(node.Line, at, fmt.Errorf("%w, expected %w", errValue(node), err))
		}
		return nil
	}
}

func (r *reader) text(target *string) func(string, *yaml.Node) error {
	return r.scalar(func(text string) error {
		*target = text
		return nil
	})
}

func (r *reader) number(target any, low, high int64) func(string, *yaml.Node) error {
	return r.scalar(func(text string) error {
		n, err := strconv.ParseInt(text, 0, 64)
		if err != nil || n < low || n > high {
			return fmt.Errorf("a whole number from %d to %d", low, high)
		}
		switch target := target.(type) {
		case *int:
			*target = int(n)
		case *uint16:
			*target = uint16(n)
		case *uint32:
			*target = uint32(n)
		default:
			panic(fmt.Sprintf("a number of the configuration is not kept as %T", target))
		}
		return nil
	})
}

func (r *reader) address(target *netip.Addr) func(string, *yaml.Node) error {
	return r.scalar(func(text string) error {
		address, err := netip.ParseAddr(text)
		if err != nil || address.Zone() != "" || !usable(address) {
			return errors.New("an address of one host, such as 192.0.2.1 or 2001:db8::1")
		}
		*target = address.Unmap()
		return nil
	})
}

// usable reports whether an address is that of one host.
func usable(address netip.Addr) bool {
	return !address.IsUnspecified() && !address.IsMulticast() && !address.IsLoopback() &&
		!address.IsLinkLocalUnicast() && address != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

func (r *reader) prefix(target *netip.Prefix, at string, node *yaml.Node) error {
	return r.scalar(func(text string) error {
		prefix, err := netip.ParsePrefix(text)
		if err != nil || prefix.Addr().Is4In6() {
			return errors.New("a prefix, such as 10.1.0.0/16 or 2001:db8::/48")
		}
		if prefix != prefix.Masked() {
			return fmt.Errorf("no bits behind the prefix, as in %s", prefix.Masked())
		}
		*target = prefix
		return nil
	})(at, node)
}

// protocols are the names of protocols in a configuration, with IANA's numbers.
var protocols = map[string]uint8{"tcp": 6, "udp": 17, "dccp": 33, "sctp": 132}

func (r *reader) protocol(target *uint8) func(string, *yaml.Node) error {
	return r.scalar(func(text string) error {
		if number, ok := protocols[text]; ok {
			*target = number
			return nil
		}
		number, err := strconv.ParseUint(text, 10, 8)
		if err != nil || number == 0 {
			return errors.New("tcp, udp, dccp, sctp or a number from 1 to 255")
		}
		*target = uint8(number)
		return nil
	})
}

func (r *reader) ports(target *PortRange) func(string, *yaml.Node) error {
	return r.scalar(func(text string) error {
		first, last, ranged := strings.Cut(text, "-")
		if !ranged {
			last = first
		}
		low, err1 := strconv.ParseUint(strings.TrimSpace(first), 10, 16)
		high, err2 := strconv.ParseUint(strings.TrimSpace(last), 10, 16)
		if err1 != nil || err2 != nil || low == 0 || high < low {
			return errors.New("a port from 1 to 65535, or a range such as 7000-7100")
		}
		*target = PortRange{uint16(low), uint16(high)}
		return nil
	})
}

func (r *reader) duration(target *time.Duration) func(string, *yaml.Node) error {
	return r.scalar(func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d < minDeadline || d > maxDeadline {
			return fmt.Errorf("a duration with its unit, from %v to %v, such as 50ms", minDeadline, maxDeadline)
		}
		*target = d
		return nil
	})
}

// copies reads auto, off, all, a name, or a list of names.
func (r *reader) copies(target *Copies) func(string, *yaml.Node) error {
	return func(at string, node *yaml.Node) error {
		text := node.Value
		if node.Kind == yaml.SequenceNode {
			var names []string
			if err := readList(r, at, node, &names, func(name *string, at string, node *yaml.Node) error {
				return r.text(name)(at, node)
			}); err != nil {
				return err
			}
			text = strings.Join(names, ",")
		} else if node.Kind != yaml.ScalarNode {
			return r.fail(node.Line, at, fmt.Errorf("%w, expected auto, off, all or a list of paths", errValue(node)))
		}
		copies, err := ParseCopies(text)
		if err != nil {
			return r.fail(node.Line, at, err)
		}
		*target = copies
		return nil
	}
}

// fail returns the error of a key.
func (r *reader) fail(line int, at string, err error) error {
	if !errors.Is(err, ErrConfig) {
		err = fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if at == "" {
		return fmt.Errorf("%s:%d: %w", r.path, line, err)
	}
	return fmt.Errorf("%s:%d: key %q: %w", r.path, line, at, err)
}
