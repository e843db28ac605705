package edge

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// studio is the configuration of the documentation.
const studio = `
name: studio
peer: office
key-file: /etc/volnet/pair.key
port: 4755
state: /run/volnet
metrics-listen: 127.0.0.1:9091
controller:
  url: https://controller:8443
  token-file: /etc/volnet/token
paths:
  - {name: fibre, interface: eth0, local: 192.0.2.1, remote: 198.51.100.1}
  - {name: lte, interface: wwan0, local: 203.0.113.7, remote: 198.51.100.9, mtu: 1430}
send:
  format: encapsulated
  rules:
    - {name: conference, to: 10.1.0.0/16, protocol: udp, ports: 7882, deadline: 50ms, copies: auto}
    - {name: rest, to: 10.1.0.0/16, dscp: 46, mark: 0x10, copies: [fibre, lte]}
receive:
  inner: [10.1.0.0/16]
`

func TestParse(t *testing.T) {
	got, err := Parse("edge.yaml", []byte(studio))
	if err != nil {
		t.Fatal(err)
	}
	prefix := netip.MustParsePrefix("10.1.0.0/16")
	want := &Config{
		Name: "studio", Peer: "office", KeyFile: "/etc/volnet/pair.key", Port: 4755, State: "/run/volnet",
		MetricsListen: "127.0.0.1:9091",
		Controller:    &Controller{URL: "https://controller:8443", TokenFile: "/etc/volnet/token"},
		Paths: []Path{
			{Name: "fibre", Interface: "eth0", Local: netip.MustParseAddr("192.0.2.1"),
				Remote: netip.MustParseAddr("198.51.100.1")},
			{Name: "lte", Interface: "wwan0", Local: netip.MustParseAddr("203.0.113.7"),
				Remote: netip.MustParseAddr("198.51.100.9"), MTU: 1430},
		},
		Send: &Send{Format: FormatEncapsulated, Rules: []Rule{
			{Name: "conference", To: prefix, Protocol: 17, Ports: PortRange{7882, 7882}, DSCP: -1,
				Deadline: 50 * time.Millisecond, Copies: Copies{Mode: CopiesAuto}},
			{Name: "rest", To: prefix, DSCP: 46, Mark: 16, Deadline: 50 * time.Millisecond,
				Copies: Copies{Mode: CopiesPaths, Paths: []string{"fibre", "lte"}}},
		}},
		Receive: &Receive{Format: FormatEncapsulated, Inner: []netip.Prefix{prefix}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, expected %+v", got, want)
	}
}

func TestParseDefaults(t *testing.T) {
	got, err := Parse("edge.yaml", []byte(`{name: a, peer: b, key-file: k, receive: {inner: ["::/0"]},
		paths: [{name: p, interface: i, local: "2001:db8::1", remote: "2001:db8::2"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got.Port != defaultPort || got.State != defaultState || got.Send != nil || got.Controller != nil {
		t.Errorf("got %+v", got)
	}
}

// TestParseErrors changes one thing of the configuration. Each error is one line with the file, the line, the key and
// the problem.
func TestParseErrors(t *testing.T) {
	for _, test := range []struct{ old, new, want string }{
		{"port: 4755", "prot: 4755", `edge.yaml:5: key "prot": invalid configuration: the key is unknown, ` +
			`expected one of name, peer, key-file, port, state, metrics-listen, controller, paths, send, receive`},
		{"mtu: 1430", "mut: 1430", `edge.yaml:13: key "paths[1].mut"`},
		{"deadline: 50ms", "dedaline: 50ms", `key "send.rules[0].dedaline"`},
		{"port: 4755", "port: 70000", `the value is "70000", expected a whole number from 1 to 65535`},
		{"port: 4755", "port: 1\nport: 2", `key "port": invalid configuration: the key occurs twice`},
		{"port: 4755", "port:", `the key has no value`},
		{"port: 4755", "port: [1]", `the value is a list, expected a single value`},
		{"name: studio", "name: st/dio", `key "name": invalid configuration: the name is "st/dio"`},
		{"name: studio", "name: ../x", `the name is "../x"`},
		{"\nname: studio", "", `key "name": invalid configuration: the key is missing`},
		{"peer: office", "peer: studio", `the other edge has the name "studio" of this edge`},
		{"peer: office\n", "", `key "peer"`},
		{"key-file: /etc/volnet/pair.key\n", "", `key "key-file"`},
		{"state: /run/volnet", "state: run", `the folder "run" is relative`},
		{"127.0.0.1:9091", "9091", `the address is "9091", expected host:port`},
		{"https://controller:8443", "http://controller:8443", `expected https://host:port`},
		{"  token-file: /etc/volnet/token\n", "", `key "controller.token-file"`},
		{"name: fibre, ", "", `edge.yaml:12: key "paths[0].name": invalid configuration: the path has no name`},
		{"name: lte", "name: fibre", `two paths have the name "fibre"`},
		{"name: lte", "name: all", `the name "all" is a mode of copies`},
		{"interface: wwan0", "interface: eth0", `the interface "eth0" is that of the path "fibre" already`},
		{"interface: wwan0, ", "", `key "paths[1].interface": invalid configuration: the key is missing`},
		{"interface: wwan0", "interface: wwan0123456789ab", `the limit is 15`},
		{"203.0.113.7", "192.0.2.1", `the address 192.0.2.1 is that of the path "fibre" already`},
		{"198.51.100.9", "198.51.100.1", `the address 198.51.100.1 is that of the path "fibre" already`},
		{"203.0.113.7", "203.0.113.7/24", `expected an address of one host`},
		{"203.0.113.7", "0.0.0.0", `expected an address of one host`},
		{"203.0.113.7", "224.0.0.1", `expected an address of one host`},
		{"203.0.113.7", "\"fe80::1%eth0\"", `expected an address of one host`},
		{"203.0.113.7", "\"2001:db8::1\"", `are of different versions of IP`},
		{"203.0.113.7", "198.51.100.9", `both ends of the path have the address 198.51.100.9`},
		{"mtu: 1430", "mtu: 100", `expected a whole number from 576 to 65535`},
		{"format: encapsulated", "format: paper", `the format is "paper", expected encapsulated or stamped`},
		{"name: rest", "name: conference", `two rules have the name "conference"`},
		{"name: rest, ", "", `the rule has no name`},
		{"to: 10.1.0.0/16, dscp", "dscp", `key "send.rules[1].to": invalid configuration: the key is missing`},
		{"to: 10.1.0.0/16, dscp", "to: 10.1.2.0/16, dscp", `expected no bits behind the prefix, as in 10.1.0.0/16`},
		{"to: 10.1.0.0/16, dscp", "to: 10.1.0.0, dscp", `expected a prefix`},
		{"to: 10.1.0.0/16, dscp", "to: 224.0.0.0/8, dscp", `is multicast, which is never copied`},
		{"protocol: udp", "protocol: upd", `expected tcp, udp, dccp, sctp or a number`},
		{"protocol: udp, ", "", `ports need a protocol`},
		{"protocol: udp", "protocol: 1", `rules select ports of udp and tcp only, the protocol is 1`},
		{"protocol: udp", "protocol: sctp", `rules select ports of udp and tcp only, the protocol is 132`},
		{"protocol: udp", "protocol: dccp", `rules select ports of udp and tcp only, the protocol is 33`},
		{"ports: 7882", "ports: 9-8", `expected a port from 1 to 65535, or a range`},
		{"dscp: 46", "dscp: 64", `expected a whole number from 0 to 63`},
		{"deadline: 50ms", "deadline: 50", `expected a duration with its unit`},
		{"copies: auto", "copies: some", `key "send.rules[0].copies": invalid configuration: unknown path "some", ` +
			`expected fibre, lte`},
		{"copies: [fibre, lte]", "copies: [fibre, fibre]", `name the path "fibre" twice`},
		{"copies: [fibre, lte]", "copies: {a: b}", `expected auto, off, all or a list of paths`},
		{"inner: [10.1.0.0/16]", "inner: []", `there are 0 prefixes, expected 1 to 64`},
		{"inner: [10.1.0.0/16]", "inner: 10.1.0.0/16", `expected a list`},
		{"port: 4755", "port: 4755\n---\na: b", `the file has more than one document`},
		{"port: 4755", "port: [", `edge.yaml: invalid configuration: yaml:`},
	} {
		if !strings.Contains(studio, test.old) {
			t.Fatalf("the configuration does not contain %q", test.old)
		}
		_, err := Parse("edge.yaml", []byte(strings.Replace(studio, test.old, test.new, 1)))
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q instead of %q: got %v, expected %s", test.new, test.old, err, test.want)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("the error has more than one line: %v", err)
		}
	}
	for name, text := range map[string]string{
		"empty": "", "a list": "- a", "no side": "{name: a, peer: b, key-file: k}",
		"no path": "{name: a, peer: b, key-file: k, receive: {inner: [10.0.0.0/8]}}",
	} {
		if _, err := Parse("edge.yaml", []byte(text)); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "edge.yaml")
	if _, err := Load(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(file, []byte(studio), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(file, []byte("#"+strings.Repeat("x", maxFileBytes)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); !errors.Is(err, ErrConfig) {
		t.Errorf("a large file: %v", err)
	}
}

func TestCopiesText(t *testing.T) {
	for _, text := range []string{"auto", "off", "all", "fibre", "fibre,lte"} {
		var c Copies
		if err := c.UnmarshalText([]byte(text)); err != nil || c.String() != text {
			t.Errorf("%q became %q, %v", text, c, err)
		}
	}
	for _, text := range []string{"", "a,,b", "a,a"} {
		if c, err := ParseCopies(text); !errors.Is(err, ErrConfig) {
			t.Errorf("%q became %q, %v", text, c, err)
		}
	}
}

func TestCheckOrder(t *testing.T) {
	c, err := Parse("edge.yaml", []byte(studio))
	if err != nil {
		t.Fatal(err)
	}
	receiver := *c
	receiver.Send = nil
	copies := func(text string) *Copies {
		parsed, err := ParseCopies(text)
		if err != nil {
			t.Fatal(err)
		}
		return &parsed
	}
	for _, test := range []struct {
		config *Config
		order  Order
		want   error
	}{
		{c, Order{Copies: copies("all")}, nil},
		{c, Order{Rule: "rest", Copies: copies("lte")}, nil},
		{c, Order{Rule: "conference", Trigger: TriggerStart}, nil},
		{c, Order{Rule: "nothing", Trigger: TriggerStart}, ErrUnknownRule},
		{c, Order{Rule: "rest", Copies: copies("lte,dsl")}, ErrUnknownPath},
		{c, Order{Rule: "rest", Trigger: "begin"}, ErrOrder},
		{c, Order{Rule: "rest"}, ErrOrder},
		{&receiver, Order{Trigger: TriggerStop}, ErrUnknownRule},
	} {
		if err := test.config.checkOrder(test.order); !errors.Is(err, test.want) {
			t.Errorf("%+v: got %v, expected %v", test.order, err, test.want)
		}
	}
}

// FuzzParse checks that any text gives a configuration that validates or an error of one line.
func FuzzParse(f *testing.F) {
	f.Add(studio)
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse("edge.yaml", []byte(text))
		if err == nil {
			_, err = c.validate()
		} else if !errors.Is(err, ErrConfig) {
			t.Errorf("an error of another kind: %v", err)
			return
		} else {
			return
		}
		if err != nil {
			t.Errorf("the configuration does not validate again: %v", err)
		}
	})
}
