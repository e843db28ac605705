package edge

import (
	"fmt"
	"slices"
	"strings"
)

// CopiesMode is the way in which the paths of a rule's packets are chosen.
type CopiesMode string

// Modes of copies.
const (
	// CopiesAuto leaves the decision to the edge: reports of the other edge and triggers.
	CopiesAuto CopiesMode = "auto"
	// CopiesOff sends the packets unchanged on the path of their route.
	CopiesOff CopiesMode = "off"
	// CopiesAll sends the packets on every path.
	CopiesAll CopiesMode = "all"
	// CopiesPaths sends the packets on the named paths.
	CopiesPaths CopiesMode = "paths"
)

// Copies are the paths on which the packets of a rule leave.
type Copies struct {
	Mode CopiesMode
	// Paths are the names of the paths in mode CopiesPaths.
	Paths []string
}

// ParseCopies parses auto, off, all or names of paths with commas between them.
func ParseCopies(text string) (Copies, error) {
	switch mode := CopiesMode(text); mode {
	case CopiesAuto, CopiesOff, CopiesAll:
		return Copies{Mode: mode}, nil
	}
	names := strings.Split(text, ",")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		if names[i] == "" {
			return Copies{}, fmt.Errorf("%w: the copies %q are neither auto, off, all nor names of paths",
				ErrConfig, text)
		}
		if slices.Contains(names[:i], names[i]) {
			return Copies{}, fmt.Errorf("%w: the copies %q name the path %q twice", ErrConfig, text, names[i])
		}
	}
	return Copies{Mode: CopiesPaths, Paths: names}, nil
}

// String returns the text that ParseCopies parses.
func (c Copies) String() string {
	if c.Mode == CopiesPaths {
		return strings.Join(c.Paths, ",")
	}
	return string(c.Mode)
}

// MarshalText returns the text that ParseCopies parses.
func (c Copies) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText is ParseCopies.
func (c *Copies) UnmarshalText(text []byte) error {
	parsed, err := ParseCopies(string(text))
	if err == nil {
		*c = parsed
	}
	return err
}

// mask returns the mask of the paths that the copies name, with an error for an unknown name.
func (c *Config) mask(copies Copies) (uint8, error) {
	if copies.Mode == CopiesAll {
		return uint8(1<<len(c.Paths) - 1), nil
	}
	var mask uint8
	for _, name := range copies.Paths {
		i := c.pathIndex(name)
		if i < 0 {
			return 0, fmt.Errorf("%w %q, expected %s", ErrUnknownPath, name, strings.Join(c.pathNames(), ", "))
		}
		mask |= 1 << i
	}
	return mask, nil
}

// checkOrder returns an error unless an order can be carried out.
func (c *Config) checkOrder(o Order) error {
	switch {
	case c.Send == nil:
		return fmt.Errorf("%w %q: this edge has no sender", ErrUnknownRule, o.Rule)
	case o.Trigger != "" && o.Trigger != TriggerStart && o.Trigger != TriggerStop:
		return fmt.Errorf("%w: the trigger is %q, expected %s or %s", ErrOrder, o.Trigger, TriggerStart, TriggerStop)
	case o.Copies == nil && o.Trigger == "":
		return fmt.Errorf("%w: it has neither copies nor a trigger", ErrOrder)
	}
	names := make([]string, len(c.Send.Rules))
	for i, rule := range c.Send.Rules {
		names[i] = rule.Name
	}
	if o.Rule != "" && !slices.Contains(names, o.Rule) {
		return fmt.Errorf("%w %q, expected %s", ErrUnknownRule, o.Rule, strings.Join(names, ", "))
	}
	if o.Copies == nil {
		return nil
	}
	_, err := c.mask(*o.Copies)
	return err
}

// pathNames returns the names of all paths.
func (c *Config) pathNames() []string {
	names := make([]string, len(c.Paths))
	for i, p := range c.Paths {
		names[i] = p.Name
	}
	return names
}

// namesOf returns the names of the paths in a mask.
func (c *Config) namesOf(mask uint8) []string {
	names := []string{}
	for i, p := range c.Paths {
		if mask&(1<<i) != 0 {
			names = append(names, p.Name)
		}
	}
	return names
}
