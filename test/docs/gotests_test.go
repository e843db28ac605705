package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goTest is a call of go test in a page, in a block or in a code span.
var goTest = regexp.MustCompile("(?m)\\bgo test ([^`\n]*)")

// declared is the declaration of a test, a benchmark or a fuzz test.
var declared = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w*)\(`)

// TestGoTestsExist checks that the packages in calls of go test exist, and that their tests or benchmarks match the
// patterns. TestName stands for any name; "-", xxx and ^$ select nothing on purpose.
func TestGoTestsExist(t *testing.T) {
	found := 0
	for _, d := range documents(t) {
		for _, call := range goTest.FindAllStringSubmatch(d.text, -1) {
			words := strings.Fields(call[1])
			var names []string
			for _, word := range words {
				if strings.HasPrefix(word, "./") && !strings.Contains(word, "...") {
					names = append(names, d.testsIn(t, word)...)
				}
			}
			if len(names) == 0 {
				continue
			}
			found++
			for i, word := range words[:len(words)-1] {
				kind, pattern := "Test", strings.Trim(words[i+1], "'")
				switch {
				case word == "-bench":
					kind = "Benchmark"
				case word != "-run", pattern == "-", pattern == "xxx", pattern == "^$", pattern == "TestName":
					continue
				}
				matches := regexp.MustCompile(pattern)
				met := false
				for _, name := range names {
					met = met || strings.HasPrefix(name, kind) && matches.MatchString(name)
				}
				if !met {
					t.Errorf("%s: go test %s: no %s matches %s", d.name, call[1], strings.ToLower(kind), pattern)
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("checked %d calls of go test, expected at least 20: does the test still see them?", found)
	}
}

// testsIn returns the names of the tests and benchmarks of a package, which is below the checkout or below lab.
func (d document) testsIn(t *testing.T, folder string) []string {
	t.Helper()
	var names []string
	for _, module := range []string{"", "lab"} {
		files, err := filepath.Glob(filepath.Join(root, module, filepath.FromSlash(folder), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range declared.FindAllStringSubmatch(string(code), -1) {
				names = append(names, match[1])
			}
		}
	}
	if len(names) == 0 {
		t.Errorf("%s: go test names %s, which has no tests", d.name, folder)
	}
	return names
}
