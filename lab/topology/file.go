package topology

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/volsfu/volsfu/internal/netem"
)

const (
	maxFileBytes  = 1 << 20  // of a topology
	maxTraceBytes = 64 << 20 // of a trace: a day with a row every 20 ms
)

// ReadFile reads a topology from a YAML file, and its traces from the file's folder. Errors wrap ErrTopology and name
// line and key, or are errors of reading.
func ReadFile(name string) (*Topology, error) {
	text, err := readLimited(os.DirFS(filepath.Dir(name)), filepath.Base(name), maxFileBytes)
	if err != nil {
		return nil, fmt.Errorf("topology %s: %w", name, err)
	}
	t, err := Parse(text, os.DirFS(filepath.Dir(name)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// readLimited reads a file of at most limit bytes.
func readLimited(files fs.FS, name string, limit int64) (text []byte, err error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if text, err = io.ReadAll(io.LimitReader(file, limit+1)); err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrTopology, name, limit)
	}
	return text, nil
}

// Parse reads a topology from YAML; files contains its traces. Errors wrap ErrTopology and name line and key.
func Parse(text []byte, files fs.FS) (*Topology, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTopology, err)
	}
	t := &Topology{Hosts: make(map[string]Host), Links: make(map[string]Link)}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		return nil, fmt.Errorf("%w: the file is empty, expected hosts, links and paths", ErrTopology)
	}
	root := element{node: document.Content[0], files: files}
	err := root.mapping(map[string]field{
		"seed":     func(e element) error { return e.number(&t.Seed) },
		"ipv6":     func(e element) error { return e.boolean(&t.IPv6) },
		"ethernet": func(e element) error { return e.boolean(&t.Ethernet) },
		"hosts": func(e element) error {
			return e.entries(func(name string,
				e element) error {
				return e.host(t, name)
			})
		},
		"links": func(e element) error {
			return e.entries(func(name string,
				e element) error {
				return e.link(t, name)
			})
		},
		"paths": func(e element) error { return e.list(func(e element) error { return e.path(t) }) },
	})
	if err != nil {
		return nil, err
	}
	return t, t.Validate()
}

// host reads an entry of hosts.
func (e element) host(t *Topology, name string) error {
	var h Host
	err := e.mapping(map[string]field{
		"clock_offset": func(e element) error { return e.duration(&h.ClockOffset) },
		"sysctls": func(e element) error {
			h.Sysctls = make(map[string]string)
			return e.entries(func(name string, e element) error {
				value, err := e.text()
				h.Sysctls[name] = value
				return err
			})
		},
	})
	t.Hosts[name] = h
	return err
}

// link reads an entry of links.
func (e element) link(t *Topology, name string) error {
	link := Duplex(netem.DefaultConfig())
	both, one := false, false
	err := e.mapping(map[string]field{
		"both": func(e element) error {
			both = true
			d, err := e.direction()
			link = Link{Forth: d, Back: d}
			return err
		},
		"forth": func(e element) (err error) {
			one = true
			link.Forth, err = e.direction()
			return err
		},
		"back": func(e element) (err error) {
			one = true
			link.Back, err = e.direction()
			return err
		},
	})
	if err == nil && both && one {
		err = e.wrong("has both together with forth or back, expected either both, or forth and back")
	}
	t.Links[name] = link
	return err
}

// direction reads one direction of a link: the keys of netem.ParseProfile and the keys about time.
func (e element) direction() (Direction, error) {
	d := Direction{Config: netem.DefaultConfig()}
	var rates []string
	fields := map[string]field{
		"steps":    func(e element) error { rates = append(rates, "steps"); return e.steps(&d) },
		"trace":    func(e element) error { rates = append(rates, "trace"); return e.trace(&d) },
		"repeat":   func(e element) error { return e.duration(&d.Repeat) },
		"schedule": nil, // after everything else
	}
	for _, key := range netem.ProfileKeys() {
		fields[key] = func(e element) error {
			if key == "rate" {
				rates = append(rates, key)
			}
			return e.parameter(&d.Config, key)
		}
	}
	if err := e.mapping(fields); err != nil {
		return d, err
	}
	if len(rates) > 1 {
		return d, e.wrong("has " + strings.Join(rates, " and ") + ", expected one of them")
	}
	if err := e.schedule(&d); err != nil {
		return d, err
	}
	return d, e.repeat(&d, slices.Contains(rates, "steps"))
}

// parameter reads one parameter of a link.
func (e element) parameter(c *netem.Config, key string) error {
	value, err := e.text()
	if err != nil {
		return err
	}
	if err := c.Set(key, value); err != nil {
		return e.failed(err)
	}
	return nil
}

// steps reads a rate in steps.
func (e element) steps(d *Direction) error {
	d.Trace = &netem.RateTrace{}
	return e.list(func(e element) error {
		var step netem.RateStep
		var at, rate bool
		err := e.mapping(map[string]field{
			"at": func(e element) error { at = true; return e.duration(&step.At) },
			"rate": func(e element) error {
				rate = true
				var c netem.Config
				if text, err := e.text(); err != nil || text == "0" {
					return err // an outage
				}
				err := e.parameter(&c, "rate")
				step.RateBPS = c.RateBPS
				return err
			},
		})
		if err == nil && !(at && rate) {
			err = e.wrong("expected at and rate")
		}
		d.Trace.Steps = append(d.Trace.Steps, step)
		d.Trace.Duration = step.At + time.Second
		return err
	})
}

// trace reads a rate from a file. The value is the file's name, or a mapping with file and repeat.
func (e element) trace(d *Direction) error {
	var name string
	repeat := false
	var err error
	if e.node.Kind == yaml.ScalarNode {
		name, err = e.text()
	} else {
		err = e.mapping(map[string]field{
			"file":   func(e element) (err error) { name, err = e.text(); return err },
			"repeat": func(e element) error { return e.boolean(&repeat) },
		})
	}
	if err != nil {
		return err
	}
	text, err := readLimited(e.files, filepath.ToSlash(name), maxTraceBytes)
	if err != nil {
		return e.failed(err)
	}
	trace, err := netem.ReadRateTrace(strings.NewReader(string(text)))
	if err != nil {
		return e.failed(fmt.Errorf("%s: %w", name, err))
	}
	trace.Loop = repeat
	d.Trace = &trace
	return nil
}

// schedule reads the changes of a direction. Parameters that are missing in an entry keep their value.
func (e element) schedule(d *Direction) error {
	list, ok := e.child("schedule")
	if !ok {
		return nil
	}
	current := d.Config
	return list.list(func(e element) error {
		var change Change
		at := false
		fields := map[string]field{"at": func(e element) error { at = true; return e.duration(&change.At) }}
		for _, key := range netem.ProfileKeys() {
			fields[key] = func(e element) error {
				if key == "rate" && d.Trace != nil {
					return e.wrong("expected no rate, because steps or trace set the rate")
				}
				return e.parameter(&current, key)
			}
		}
		err := e.mapping(fields)
		if err == nil && !at {
			err = e.wrong("expected at, the time of the change")
		}
		change.Config = current
		d.Schedule = append(d.Schedule, change)
		return err
	})
}

// repeat applies the time after which steps or the schedule begin again.
func (e element) repeat(d *Direction, steps bool) error {
	if d.Repeat == 0 {
		return nil
	}
	if steps {
		d.Trace.Duration, d.Trace.Loop = d.Repeat, true
	}
	switch {
	case len(d.Schedule) > 0:
	case steps:
		d.Repeat = 0
	default:
		return e.wrong("has repeat, expected steps or schedule with it; " +
			"a trace repeats with {file: NAME, repeat: true}")
	}
	return nil
}

// path reads an entry of paths.
func (e element) path(t *Topology) error {
	var p Path
	err := e.mapping(map[string]field{
		"from": func(e element) (err error) { p.From, err = e.text(); return err },
		"to":   func(e element) (err error) { p.To, err = e.text(); return err },
		"through": func(e element) error {
			return e.list(func(e element) error {
				text, err := e.text()
				if err != nil {
					return err
				}
				link, way, given := strings.Cut(text, "/")
				if given && way != Forth.String() && way != Back.String() {
					return e.wrong(fmt.Sprintf("is %s, expected a link, or a link with /forth or /back",
						strconv.Quote(text)))
				}
				p.Through = append(p.Through, Passage{Link: link, Reversed: way == Back.String()})
				return nil
			})
		},
	})
	t.Paths = append(t.Paths, p)
	return err
}
