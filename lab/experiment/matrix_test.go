package experiment

import (
	"slices"
	"strings"
	"testing"
)

func TestMatrixOfManyAxes(t *testing.T) {
	m := Matrix{{Axes: []Axis{{"a", []any{1, 2}}, {"b", []any{"x", "y"}}, {"c", []any{true}}}}}
	cells, err := m.cells(nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range cells {
		names = append(names, c.Name())
	}
	if want := []string{"a=1 b=x c=true", "a=1 b=y c=true", "a=2 b=x c=true", "a=2 b=y c=true"}; !slices.Equal(names,
		want) {
		t.Errorf("expected %v, got %v", want, names)
	}
}

func TestMatrixIsBounded(t *testing.T) {
	values := make([]any, 300)
	for i := range values {
		values[i] = i
	}
	m := Matrix{{Axes: []Axis{{"a", values}, {"b", values}, {"c", values}, {"d", values}}}}
	if _, err := m.cells(nil); err == nil || !strings.Contains(err.Error(), "at most 10000") {
		t.Errorf("expected an error about too many cells, got %v", err)
	}
}
