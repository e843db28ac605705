package experiment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Cell is one combination of parameters.
type Cell struct {
	// Parameters are the parameters of the whole experiment, followed by the parameters that the matrix varies.
	Parameters Parameters
	// Short is set if short runs include the cell.
	Short bool
	// varied is the number of parameters at the end that come from the matrix.
	varied int
}

// Varied returns the parameters in which the cells of an experiment differ.
func (c *Cell) Varied() Parameters { return c.Parameters[len(c.Parameters)-c.varied:] }

// Name returns the cell's varied parameters as name=value.
func (c *Cell) Name() string {
	if c.varied == 0 {
		return "only"
	}
	return c.Varied().String()
}

// folder returns the cell's name in a form valid for folders.
func (c *Cell) folder() string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("=.-_", r) {
			return r
		}
		return '_'
	}, strings.ReplaceAll(c.Name(), " ", ","))
}

// Matrix lists the blocks of varied parameters, each the product of its values. In a file a block maps names to values
// or lists of values; the key short includes its cells in short runs.
type Matrix []Block

// Block is a product of values.
type Block struct {
	Axes  []Axis
	Short bool
}

// Axis is a parameter and its values.
type Axis struct {
	Name   string
	Values []any
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (b *Block) UnmarshalYAML(node *yaml.Node) error {
	return eachEntry(node, func(name string, value *yaml.Node) error {
		if name == "short" {
			return value.Decode(&b.Short)
		}
		axis := Axis{Name: name}
		nodes := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			nodes = value.Content
		}
		for _, n := range nodes {
			scalar, err := scalarOf(n)
			if err != nil {
				return err
			}
			axis.Values = append(axis.Values, scalar)
		}
		if len(axis.Values) == 0 {
			return fmt.Errorf("line %d: %s: expected at least one value", node.Line, name)
		}
		b.Axes = append(b.Axes, axis)
		return nil
	})
}

// cells returns the cells of the matrix; without blocks there is one cell. Each cell must be unique, and all blocks
// must have the same parameters in the same order.
func (m Matrix) cells(fixed Parameters) ([]Cell, error) {
	if len(m) == 0 {
		return []Cell{{Parameters: fixed, Short: true}}, nil
	}
	var cells []Cell
	seen := make(map[string]bool)
	for i, block := range m {
		if !slices.Equal(block.names(), m[0].names()) {
			return nil, fmt.Errorf("matrix: block %d varies %v, the first %v: expected the same, in the same order",
				i+1, block.names(), m[0].names())
		}
		for _, axis := range block.Axes {
			if _, ok := fixed.Value(axis.Name); ok {
				return nil, fmt.Errorf("matrix: %s is also among the parameters of all cells", axis.Name)
			}
		}
		for _, varied := range block.product() {
			if len(cells) == maxCells {
				return nil, fmt.Errorf("matrix: expected at most %d cells", maxCells)
			}
			c := Cell{Parameters: slices.Concat(fixed, varied), Short: block.Short, varied: len(varied)}
			if seen[c.Name()] {
				return nil, fmt.Errorf("matrix: cell %s occurs twice", c.Name())
			}
			seen[c.Name()] = true
			cells = append(cells, c)
		}
	}
	return cells, nil
}

func (b *Block) names() []string {
	names := make([]string, len(b.Axes))
	for i, a := range b.Axes {
		names[i] = a.Name
	}
	return names
}

// product returns every combination; the last axis varies fastest. product stops soon after maxCells.
func (b *Block) product() []Parameters {
	all := []Parameters{nil}
	for _, axis := range b.Axes {
		var next []Parameters
		for _, begun := range all {
			for _, value := range axis.Values {
				if len(next) > maxCells {
					break
				}
				next = append(next, append(slices.Clone(begun), Parameter{axis.Name, value}))
			}
		}
		all = next
	}
	return all
}

// Number returns a parameter as a number; a duration in milliseconds.
func (c *Cell) Number(name string) (float64, error) {
	text, _ := c.Parameters.Value(name)
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return v, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return float64(d) / float64(time.Millisecond), nil
	}
	return 0, fmt.Errorf("parameter %s: expected a number or a duration, got %q", name, text)
}
