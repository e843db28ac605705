package hosts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

// TestDocumentedFile reads the file that docs/lab.md shows.
func TestDocumentedFile(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "lab.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml hosts\n")
	text, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("expected a file of hosts on the page")
	}
	f, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Check([]string{"server", "publisher", "watcher", "producer", "consumer", "sender", "receiver"}); err !=
		nil {
		t.Error(err)
	}
	if f.Hosts["b"].Address != "192.0.2.2" || f.Link.Kind != None || f.Clocks != Estimated {
		t.Errorf("got %+v", f)
	}
	if err := f.Check([]string{"pilot"}); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), "role pilot") {
		t.Errorf("got %v", err)
	}
}

const valid = "key: k\nhosts: {a: {agent: '10.0.0.1:1'}}\nroles: {server: a}\n"

func TestParseRefuses(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", "EOF"},
		{valid + "color: red\n", "color"},
		{strings.Replace(valid, "key: k\n", "", 1), "key: expected"},
		{"key: k\n", "hosts has 0 entries"},
		{valid + "clocks: sundial\n", "clocks"},
		{strings.Replace(valid, "10.0.0.1:1", "10.0.0.1", 1), "hosts.a.agent"},
		{strings.Replace(valid, "10.0.0.1:1", "a.example:1", 1), "hosts.a.address"},
		{strings.Replace(valid, "server: a", "server: b", 1), "roles.server"},
		{valid + "link: fast\n", "link"},
		{valid + "link: {given: delay=soon}\n", "link: given"},
		{valid + "link: {thin: delay=1ms}\n", "link"},
		{valid + "link: [1]\n", "link"},
	} {
		if _, err := Parse([]byte(test.text)); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want an error with %q for\n%s", err, test.want, test.text)
		}
	}
}

// TestLinks: a cell runs if the network has its delay and loss.
func TestLinks(t *testing.T) {
	perfect, slow := netem.Config{}, netem.Config{Delay: 20 * time.Millisecond, Loss: 0.001}
	for _, test := range []struct {
		link    string
		cell    netem.Config
		refused bool
	}{
		{"none", perfect, false}, {"none", slow, true},
		{"{given: 'delay=20ms,loss=0.1%'}", slow, false}, {"{given: 'delay=20ms,loss=0.1%'}", perfect, true},
		{"{emulated: 'delay=20ms'}", slow, true},
	} {
		f, err := Parse([]byte(valid + "link: " + test.link + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Link.Refusal(test.cell); (got != "") != test.refused {
			t.Errorf("%s with %+v: got %q", test.link, test.cell, got)
		}
	}
}
