package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxFileBytes bounds a configuration file. The sample with every key explained has about 10 kB.
const maxFileBytes = 1 << 20

// readFile sets the keys in the YAML file.
func (l *Loader) readFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	if len(data) > maxFileBytes {
		return fmt.Errorf("%s: %w: more than %d bytes", path, ErrFile, maxFileBytes)
	}
	return l.readYAML(path, data)
}

// readYAML sets the keys in the text. The path is for errors.
func (l *Loader) readYAML(path string, data []byte) error {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, more yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return fmt.Errorf("%s: %w: %w", path, ErrFile, err)
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s:%d: %w: expected one document", path, more.Line, ErrFile)
	}
	return (&fileReader{path}).section(l.root, nil, document.Content[0])
}

// fileReader sets keys from the nodes of one file.
type fileReader struct{ path string }

// section reads a mapping. A section whose keys are all commented out is null and does not change.
func (r *fileReader) section(s *section, at []string, node *yaml.Node) error {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if isNull(node) {
		return nil
	}
	if node.Kind != yaml.MappingNode {
		return r.fail(node, at, fmt.Errorf("%w, expected keys below it", ErrValue))
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		below := append(append([]string(nil), at...), name.Value)
		if seen[name.Value] {
			return r.fail(name, below, fmt.Errorf("%w: the key occurs twice", ErrFile))
		}
		seen[name.Value] = true
		if err := r.entry(s, below, name, value); err != nil {
			return err
		}
	}
	return nil
}

func (r *fileReader) entry(s *section, at []string, name, value *yaml.Node) error {
	for _, k := range s.keys {
		if k.path[len(k.path)-1] == name.Value {
			return r.key(k, value)
		}
	}
	for _, sub := range s.sections {
		if sub.name == name.Value {
			return r.section(sub, at, value)
		}
	}
	return r.fail(name, at, fmt.Errorf("%w, expected %s", ErrUnknownKey, strings.Join(s.names(), ", ")))
}

// key reads a value. A null value does not change the key.
func (r *fileReader) key(k *key, node *yaml.Node) error {
	resolved := node
	if node.Kind == yaml.AliasNode {
		resolved = node.Alias
	}
	if isNull(resolved) {
		return nil
	}
	value := reflect.New(k.value.Type())
	kind := kindOf(k.value.Type())
	err := resolved.Decode(value.Interface())
	switch {
	case err != nil:
	case kind == "int" && resolved.ShortTag() != "!!int":
		// The library would truncate 1.5 to 1.
		err = ErrValue
	case kind == "float":
		_, err = parseFloat(format(value.Elem()))
	case !utf8.ValidString(format(value.Elem())):
		// Binary data, written as base64.
		err = ErrValue
	}
	if err != nil {
		return r.fail(node, k.path, fmt.Errorf("%w, expected %s", ErrValue, expected[kind]))
	}
	k.value.Set(value.Elem())
	return nil
}

func (r *fileReader) fail(node *yaml.Node, at []string, err error) error {
	return fmt.Errorf("%s:%d: key %q: %w", r.path, node.Line, strings.Join(at, "."), err)
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!null" }

// names returns the keys and subsections of the section.
func (s *section) names() []string {
	names := make([]string, 0, len(s.keys)+len(s.sections))
	for _, k := range s.keys {
		names = append(names, k.path[len(k.path)-1])
	}
	for _, sub := range s.sections {
		names = append(names, sub.name)
	}
	return names
}
