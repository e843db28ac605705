package metrics

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestOperatorsTable compares the table of docs/operations.md with the metrics: names, types, labels and meanings, in
// order.
func TestOperatorsTable(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	registry, _ := newRegistry(t, plane{Snapshot{Paced: true}})
	gathered, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]string{}
	for _, family := range gathered {
		types[family.GetName()] = strings.ToLower(family.GetType().String())
	}
	var want strings.Builder
	for _, f := range families {
		labels := make([]string, 0, len(f.labels))
		for _, label := range f.labels {
			labels = append(labels, "`"+label+"`")
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", f.name, types[f.name], strings.Join(labels, ", "),
			strings.TrimSuffix(f.help, "."))
	}
	const head = "| metric | type | labels | meaning |\n|---|---|---|---|\n"
	_, table, found := strings.Cut(string(text), head)
	if !found {
		t.Fatalf("docs/operations.md has no table that begins with\n%s", head)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	if table+"\n" != want.String() {
		t.Errorf("the table of docs/operations.md is\n%s\nexpected\n%s", table, want.String())
	}
}
