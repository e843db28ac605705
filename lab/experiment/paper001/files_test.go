package paper001

import (
	"testing"

	"github.com/volsfu/volsfu/lab/experiment"
)

// TestFiles reads every file with all of its cells, plots and references.
func TestFiles(t *testing.T) {
	l, err := experiment.NewLibrary(Collection())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct{ cells, short int }{
		"sfu-table1": {20, 10}, "sfu-table2": {32, 8}, "sfu-fig3": {5, 5}, "sfu-fig4": {205, 20}, "sfu-fig5-6": {10, 8},
		"sfu-dash": {10, 0}, "sfu-dash-decisions": {10, 0},
	} {
		e, err := l.Find(name)
		if err != nil {
			t.Error(err)
			continue
		}
		short := 0
		for _, c := range e.Cells() {
			if c.Short {
				short++
			}
		}
		if len(e.Cells()) != want.cells || short != want.short {
			t.Errorf("%s: expected %d cells, %d of them short, got %d and %d", name, want.cells, want.short,
				len(e.Cells()), short)
		}
	}
}
