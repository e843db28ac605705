package topology_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/topology"
)

const example = `
seed: 7
ethernet: true
hosts:
  server:
  phone:
    clock_offset: 50ms
    sysctls: {net.ipv4.tcp_ecn: 1}
  desk: {}
links:
  wifi:
    forth:
      delay: 5ms
      jitter: 1ms
      jitter_reorders: true
      loss: 1%
      burst: 0.5%/4
      trace: {file: wifi.csv, repeat: true}
      schedule:
        - {at: 5s, delay: 20ms}
        - {at: 7s, loss: 0}
      repeat: 10s
    back: {rate: 100Mbit, queue: "fq:50ms"}
  core:
    both:
      queue: dualpi2
      steps:
        - {at: 0s, rate: 200Mbit}
        - {at: 10s, rate: 50Mbit}
        - {at: 12s, rate: 0}
      repeat: 15s
paths:
  - {from: phone, to: server, through: [wifi, core]}
  - {from: phone, to: server, through: [core/forth]}
  - {from: desk, to: phone, through: [wifi/back]}
`

// files are the traces that topologies name.
var files = fstest.MapFS{"wifi.csv": {Data: []byte("t_s,mbps\n0,40\n1,20\n")}, "wrong.csv": {Data: []byte("hello\n")}}

func TestParse(t *testing.T) {
	got, err := topology.Parse([]byte(example), files)
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(*netem.Config)) netem.Config {
		c := netem.DefaultConfig()
		change(&c)
		return c
	}
	wifi := with(func(c *netem.Config) {
		c.Delay, c.Jitter, c.JitterReorders, c.Loss = 5*time.Millisecond, time.Millisecond, true, 0.01
		c.Burst, err = netem.BurstLoss(0.005, 4)
	})
	slow := wifi
	slow.Delay = 20 * time.Millisecond
	lossless := slow
	lossless.Loss = 0
	core := topology.Direction{
		Config: with(func(c *netem.Config) { c.Queue = netem.QueueDualPI2 }),
		Trace: &netem.RateTrace{
			Steps: []netem.RateStep{{At: 0, RateBPS: 200e6}, {At: 10 * time.Second, RateBPS: 50e6},
				{At: 12 * time.Second, RateBPS: 0}},
			Duration: 15 * time.Second, Loop: true,
		},
	}
	expected := &topology.Topology{
		Seed: 7, Ethernet: true,
		Hosts: map[string]topology.Host{
			"server": {}, "desk": {}, "phone": {ClockOffset: 50 * time.Millisecond,
				Sysctls: map[string]string{"net.ipv4.tcp_ecn": "1"}},
		},
		Links: map[string]topology.Link{
			"wifi": {
				Forth: topology.Direction{
					Config: wifi,
					Trace: &netem.RateTrace{
						Steps:    []netem.RateStep{{At: 0, RateBPS: 40e6}, {At: time.Second, RateBPS: 20e6}},
						Duration: 2 * time.Second, Loop: true,
					},
					Schedule: []topology.Change{{At: 5 * time.Second, Config: slow},
						{At: 7 * time.Second, Config: lossless}},
					Repeat: 10 * time.Second,
				},
				Back: topology.Direction{Config: with(func(c *netem.Config) {
					c.RateBPS, c.Queue, c.QueueDelay = 100e6,
						netem.QueueFQ, 50*time.Millisecond
				})},
			},
			"core": {Forth: core, Back: core},
		},
		Paths: []topology.Path{
			{From: "phone", To: "server", Through: []topology.Passage{{Link: "wifi"}, {Link: "core"}}},
			{From: "phone", To: "server", Through: []topology.Passage{{Link: "core"}}},
			{From: "desk", To: "phone", Through: []topology.Passage{{Link: "wifi", Reversed: true}}},
		},
	}
	if err != nil || !reflect.DeepEqual(got, expected) {
		t.Errorf("%v; got\n%+v\nexpected\n%+v", err, got, expected)
	}
}

// TestParseAliases uses an anchor for a part of a file that occurs twice.
func TestParseAliases(t *testing.T) {
	got, err := topology.Parse([]byte("hosts: {a: , b: }\nlinks:\n  l: {forth: &slow {delay: 9ms}, back: *slow}\n"+
		"paths: [{from: a, to: b, through: [l]}]\n"), files)
	if err != nil || got.Links["l"].Back.Config.Delay != 9*time.Millisecond {
		t.Errorf("%v, %+v", err, got)
	}
}

// TestParseRefuses: the error for every mistake has the place and the reason.
func TestParseRefuses(t *testing.T) {
	const hosts = "hosts: {a: , b: }\n"
	for _, test := range []struct{ text, says string }{
		{"", "the file is empty"},
		{"[", "yaml"},
		{"- 1\n", "is not a mapping"},
		{"hosts: {a: }\nhots: {}\n",
			"line 2: hots is unknown, expected one of ethernet, hosts, ipv6, links, paths, seed"},
		{"hosts: {a: , a: }\n", "hosts.a occurs twice"},
		{"hosts: {}\n", "hosts has 0 entries"},
		{"hosts: {a b: }\n", "hosts.a b: expected a name"},
		{"hosts: [a]\n", "hosts is not a mapping"},
		{"hosts: {[1]: a}\n", "hosts has a key that is not text"},
		{"hosts: {a: {clock: 1s}}\n", "hosts.a.clock is unknown"},
		{"hosts: {a: {clock_offset: fast}}\n", `hosts.a.clock_offset is "fast", expected a time`},
		{"hosts: {a: {clock_offset: 99999h}}\n", "hosts.a.clock_offset is 99999h0m0s"},
		{"hosts: {a: {sysctls: {kernel.panic: 1}}}\n", `hosts.a.sysctls has "kernel.panic"`},
		{"seed: -1\n" + hosts, `seed is "-1"`},
		{hosts + "links: {l: {both: {dely: 1ms}}}\n", "links.l.both.dely is unknown, expected one of burst, delay"},
		{hosts + "links: {l: {both: {delay: 1}}}\n", `links.l.both.delay: invalid link profile: delay is "1"`},
		{hosts + "links: {l: {both: {delay: }}}\n", "links.l.both.delay has no value"},
		{hosts + "links: {l: {both: {delay: 1ms}, back: {}}}\n", "links.l has both together with forth or back"},
		{hosts + "links: {l: {both: {loss: 200%}}}\n", "links.l.forth: invalid link: loss is 2"},
		{hosts + "links: {'-': {}}\n", "links.-: expected a name"},
		{hosts + "links: {l: {both: {rate: 1Mbit, trace: wifi.csv}}}\n", "has rate and trace, expected one of them"},
		{hosts + "links: {l: {both: {trace: none.csv}}}\n", "links.l.both.trace: open none.csv"},
		{hosts + "links: {l: {both: {trace: ../wifi.csv}}}\n", "links.l.both.trace: open ../wifi.csv"},
		{hosts + "links: {l: {both: {trace: wrong.csv}}}\n", "wrong.csv: invalid rate trace: line 1"},
		{hosts + "links: {l: {both: {trace: {file: wifi.csv, repeat: often}}}}\n", `trace.repeat is "often"`},
		{hosts + "links: {l: {both: {trace: wifi.csv, queue: 0s}}}\n", "links.l.forth: queue has no limit"},
		{hosts + "links: {l: {both: {steps: []}}}\n", "links.l.forth: invalid rate trace: it has no steps"},
		{hosts + "links: {l: {both: {steps: [{at: 0s}]}}}\n", "links.l.both.steps[0] expected at and rate"},
		{hosts + "links: {l: {both: {steps: {at: 0s}}}}\n", "links.l.both.steps is not a list"},
		{hosts + "links: {l: {both: {repeat: 1s}}}\n", "has repeat, expected steps or schedule"},
		{hosts + "links: {l: {both: {schedule: [{delay: 1s}]}}}\n", "links.l.both.schedule[0] expected at"},
		{hosts + "links: {l: {both: {schedule: [{at: 1s, delay: 1s}, {at: 1s}]}}}\n",
			"links.l.forth.schedule[1].at is 1s, expected a time after 1s"},
		{hosts + "links: {l: {both: {schedule: [{at: 1s, loss: 5}]}}}\n",
			"links.l.forth.schedule[0]: invalid link: loss is 5"},
		{hosts + "links: {l: {both: {schedule: [{at: 5s}], repeat: 4s}}}\n", "links.l.forth.repeat is 4s"},
		{hosts + "links: {l: {both: {trace: wifi.csv, schedule: [{at: 1s, rate: 1Mbit}]}}}\n",
			"links.l.both.schedule[0].rate expected no rate"},
		{hosts + "links: {l: {both: {trace: wifi.csv, schedule: [{at: 1s, queue: 0s}]}}}\n",
			"links.l.forth.schedule[0]: queue has no limit"},
		{hosts + "paths: [{from: a, to: c}]\n", `paths[0].to is "c", expected one of the hosts: a, b`},
		{hosts + "paths: [{from: a, to: a}]\n", "paths[0] leads from a to itself"},
		{hosts + "paths: [{from: a, to: b, through: [l]}]\n", `paths[0].through[0] is "l", expected one of the links`},
		{hosts + "paths: [{from: a, to: b, through: [l/up]}]\n", `paths[0].through[0] is "l/up"`},
		{hosts + "paths: [{from: a, to: b, through: l}]\n", "paths[0].through is not a list"},
		{hosts + "links: {l: }\npaths: [{from: a, to: b, through: [" + strings.Repeat("l,", 17) + "]}]\n",
			"paths[0].through has 17 links"},
		{hosts + "paths: [" + strings.Repeat("{from: a, to: b},", 17) + "]\n",
			"paths[16] is one of more than 16 paths between a and b"},
	} {
		_, err := topology.Parse([]byte(test.text), files)
		if !errors.Is(err, topology.ErrTopology) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: %v, expected %q", test.text, err, test.says)
		}
	}
}

func TestReadFile(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "net.yaml")
	for file, text := range map[string]string{name: example, filepath.Join(folder, "wifi.csv"): "t_s,mbps\n0,40\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := topology.ReadFile(name); err != nil || len(got.Paths) != 3 {
		t.Errorf("%v, %+v", err, got)
	}
	if _, err := topology.ReadFile(filepath.Join(folder, "other.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, expected ErrNotExist", err)
	}
	if err := os.WriteFile(name, []byte(strings.Repeat("#", 1<<20+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := topology.ReadFile(name); !errors.Is(err, topology.ErrTopology) {
		t.Errorf("%v, expected ErrTopology for a file above the limit", err)
	}
}

func TestStar(t *testing.T) {
	star := topology.Star("server", map[string]topology.Link{"a": {}, "b": {}, "c": {}})
	if err := star.Validate(); err != nil || len(star.Hosts) != 4 || len(star.Links) != 3 || len(star.Paths) != 6 {
		t.Errorf("%v, %+v", err, star)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte("hosts: {a: , b: }\nlinks: {l: {forth: &x {delay: 9ms}, back: *x}}\n" +
		"paths: [{from: a, to: b, through: [l]}]\n"))
	f.Add([]byte("hosts: &x {a: *x}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := topology.Parse(text, files)
		if err == nil {
			err = got.Validate()
		} else if errors.Is(err, topology.ErrTopology) {
			return
		}
		if err != nil {
			t.Errorf("%v", err)
		}
	})
}
