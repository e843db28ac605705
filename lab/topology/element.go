package topology

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// element is a part of a file with its key.
type element struct {
	node  *yaml.Node
	key   string
	files fs.FS
}

// field reads one key of a mapping.
type field func(element) error

// wrong returns an error about an element.
func (e element) wrong(what string) error {
	if e.key == "" {
		return fmt.Errorf("%w: line %d: %s", ErrTopology, e.node.Line, what)
	}
	return fmt.Errorf("%w: line %d: %s %s", ErrTopology, e.node.Line, e.key, what)
}

// failed returns an error about an element, caused by err.
func (e element) failed(err error) error {
	return fmt.Errorf("%w: line %d: %s: %w", ErrTopology, e.node.Line, e.key, err)
}

// resolved returns the target of an alias, or the element itself.
func (e element) resolved() element {
	if e.node.Kind == yaml.AliasNode {
		e.node = e.node.Alias
	}
	return e
}

// below returns an element within this one.
func (e element) below(node *yaml.Node, key string) element {
	if e.key != "" && !strings.HasPrefix(key, "[") {
		key = "." + key
	}
	return element{node: node, key: e.key + key, files: e.files}.resolved()
}

// isNull reports whether a key has no value.
func (e element) isNull() bool { return e.node.Kind == yaml.ScalarNode && e.node.Tag == "!!null" }

// entries calls read for each key of a mapping. An empty value is an empty mapping.
func (e element) entries(read func(name string, e element) error) error {
	if e.isNull() {
		return nil
	}
	if e.node.Kind != yaml.MappingNode {
		return e.wrong("is not a mapping, expected keys with values")
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(e.node.Content); i += 2 {
		name, value := e.node.Content[i], e.node.Content[i+1]
		if name.Kind != yaml.ScalarNode {
			return e.wrong("has a key that is not text")
		}
		below := e.below(value, name.Value)
		if seen[name.Value] {
			return below.wrong("occurs twice")
		}
		seen[name.Value] = true
		if err := read(name.Value, below); err != nil {
			return err
		}
	}
	return nil
}

// mapping reads a mapping with known keys. A key with a nil field is read elsewhere.
func (e element) mapping(fields map[string]field) error {
	return e.entries(func(name string, e element) error {
		read, known := fields[name]
		switch {
		case !known:
			return e.wrong("is unknown, expected one of " + strings.Join(sortedKeys(fields), ", "))
		case read == nil:
			return nil
		default:
			return read(e)
		}
	})
}

// child returns the value of a key of a mapping.
func (e element) child(name string) (element, bool) {
	if e.node.Kind != yaml.MappingNode {
		return element{}, false
	}
	for i := 0; i+1 < len(e.node.Content); i += 2 {
		if e.node.Content[i].Value == name {
			return e.below(e.node.Content[i+1], name), true
		}
	}
	return element{}, false
}

// list calls read for each entry of a list.
func (e element) list(read func(element) error) error {
	if e.isNull() {
		return nil
	}
	if e.node.Kind != yaml.SequenceNode {
		return e.wrong("is not a list, expected a list")
	}
	for i, node := range e.node.Content {
		if err := read(e.below(node, "["+strconv.Itoa(i)+"]")); err != nil {
			return err
		}
	}
	return nil
}

// text returns a scalar as written in the file.
func (e element) text() (string, error) {
	if e.node.Kind != yaml.ScalarNode || e.isNull() {
		return "", e.wrong("has no value, expected a value")
	}
	return e.node.Value, nil
}

// duration reads a time with its unit.
func (e element) duration(d *time.Duration) error {
	text, err := e.text()
	if err != nil {
		return err
	}
	if *d, err = time.ParseDuration(text); err != nil {
		return e.wrong(fmt.Sprintf("is %s, expected a time with its unit such as 10ms or 5s", strconv.Quote(text)))
	}
	return nil
}

// number reads a number that is not negative.
func (e element) number(n *uint64) error {
	text, err := e.text()
	if err != nil {
		return err
	}
	if *n, err = strconv.ParseUint(text, 10, 64); err != nil {
		return e.wrong(fmt.Sprintf("is %s, expected a number, 0 or more", strconv.Quote(text)))
	}
	return nil
}

// boolean reads true or false.
func (e element) boolean(b *bool) error {
	text, err := e.text()
	if err != nil {
		return err
	}
	if text != "true" && text != "false" {
		return e.wrong(fmt.Sprintf("is %s, expected true or false", strconv.Quote(text)))
	}
	*b = text == "true"
	return nil
}
