package docs

import (
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// link is [text](target), ![text](target) or <img src="target">.
var link = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)|<img src="([^"]+)"`)

// TestLinksLeadSomewhere checks the links within the checkout: to files, and to headings of pages.
func TestLinksLeadSomewhere(t *testing.T) {
	found := 0
	for _, d := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(d.prose(), -1) {
			text := match[1] + match[2] // one of them is empty
			target, err := url.Parse(text)
			if err != nil {
				t.Errorf("%s links to %q: %v", d.name, text, err)
				continue
			}
			if target.Scheme != "" {
				continue
			}
			found++
			if problem := d.follow(t, target); problem != "" {
				t.Errorf("%s links to %q: %s", d.name, text, problem)
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d links within the checkout, expected more: does the test still see them?", found)
	}
}

// follow returns the error of a link, or "".
func (d document) follow(t *testing.T, target *url.URL) string {
	t.Helper()
	page := d
	if target.Path != "" {
		name := path.Join(path.Dir(d.name), target.Path)
		if strings.HasPrefix(name, "..") || path.IsAbs(target.Path) {
			return "it leads out of the checkout"
		}
		file := filepath.Join(root, filepath.FromSlash(name))
		if _, err := os.Stat(file); err != nil {
			return "there is no such file"
		}
		if target.Fragment == "" {
			return ""
		}
		page = readDocument(t, file)
	}
	if !slices.Contains(page.anchors(), target.Fragment) {
		return "the page has no such heading"
	}
	return ""
}

var heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)

// anchors are the names of headings in links: lower case, without punctuation, with hyphens instead of spaces.
func (d document) anchors() []string {
	var anchors []string
	for _, match := range heading.FindAllStringSubmatch(d.prose(), -1) {
		anchors = append(anchors, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, match[1]))
	}
	return anchors
}

func TestFollowing(t *testing.T) {
	d := document{name: "docs/page.md", text: "# A page\n\n## What `it` is, and why\n\n```sh\n# no heading\n```\n"}
	tests := []struct{ target, want string }{
		{"#what-it-is-and-why", ""},
		{"#a-page", ""},
		{"#no-heading", "the page has no such heading"},
		{"../README.md", ""},
		{"../README.md#two-commands", ""},
		{"../README.md#three-commands", "the page has no such heading"},
		{"missing.md", "there is no such file"},
		{"../../outside", "it leads out of the checkout"},
		{"/README.md", "it leads out of the checkout"},
	}
	for _, test := range tests {
		target, err := url.Parse(test.target)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.follow(t, target); got != test.want {
			t.Errorf("%s: got %q, expected %q", test.target, got, test.want)
		}
	}
}

// TestImagesAreWhole parses every drawing to its end.
func TestImagesAreWhole(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(root, "docs", "images", "*.svg"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no drawings in docs/images (%v)", err)
	}
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		decoder := xml.NewDecoder(file)
		for err == nil {
			_, err = decoder.Token()
		}
		_ = file.Close()
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
