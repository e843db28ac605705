package experiment

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parameter is one setting of a scenario: a number, a text, or true or false.
type Parameter struct {
	Name  string
	Value any
}

// Text returns the value as written in files and reports.
func (p Parameter) Text() string { return fmt.Sprint(p.Value) }

// Parameters are settings in the order of the file. Names are unique.
type Parameters []Parameter

// Value returns a parameter's value as text, false if there is no parameter of the name.
func (ps Parameters) Value(name string) (string, bool) {
	for _, p := range ps {
		if p.Name == name {
			return p.Text(), true
		}
	}
	return "", false
}

// Match reports whether all of some are among the parameters, with the same values.
func (ps Parameters) Match(some Parameters) bool {
	for _, p := range some {
		if value, ok := ps.Value(p.Name); !ok || value != p.Text() {
			return false
		}
	}
	return true
}

// String returns the parameters as name=value, separated by spaces.
func (ps Parameters) String() string {
	texts := make([]string, len(ps))
	for i, p := range ps {
		texts[i] = p.Name + "=" + p.Text()
	}
	return strings.Join(texts, " ")
}

// MarshalYAML implements yaml.Marshaler: a mapping.
func (ps Parameters) MarshalYAML() (any, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, p := range ps {
		value := &yaml.Node{}
		if err := value.Encode(p.Value); err != nil {
			return nil, err
		}
		node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: p.Name}, value)
	}
	return node, nil
}

// UnmarshalYAML implements yaml.Unmarshaler: a mapping of names to scalars.
func (ps *Parameters) UnmarshalYAML(node *yaml.Node) error {
	*ps = nil
	return eachEntry(node, func(name string, value *yaml.Node) error {
		scalar, err := scalarOf(value)
		if err != nil {
			return err
		}
		*ps = append(*ps, Parameter{name, scalar})
		return nil
	})
}

// UnmarshalJSON implements json.Unmarshaler: an object in the order of its text. Every text in JSON is one in YAML.
func (ps *Parameters) UnmarshalJSON(text []byte) error { return yaml.Unmarshal(text, ps) }

// eachEntry calls visit for each entry of a mapping. Duplicate names are errors.
func eachEntry(node *yaml.Node, visit func(name string, value *yaml.Node) error) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("%w: line %d: expected a mapping of parameters", ErrFile, node.Line)
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := node.Content[i].Value
		if name == "" || seen[name] {
			return fmt.Errorf("%w: line %d: parameter %q is empty or occurs twice", ErrFile, node.Content[i].Line, name)
		}
		seen[name] = true
		if err := visit(name, node.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// scalarOf reads a single value.
func scalarOf(node *yaml.Node) (any, error) {
	var value any
	if node.Kind != yaml.ScalarNode || node.Decode(&value) != nil || value == nil {
		return nil, fmt.Errorf("%w: line %d: expected a number, a text, true or false", ErrFile, node.Line)
	}
	return value, nil
}
