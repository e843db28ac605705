package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/program"
)

// programs are built for the tests of shell examples.
var programs = []string{"volsfu", "volpeer", "volbridge", "volnet", "vollab"}

// helpTimeout is far longer than a help text takes.
const helpTimeout = time.Minute

// helpers returns help texts of the programs, built as the repository builds them without a C compiler.
type helpers struct {
	t     *testing.T
	dir   string
	texts map[string]string
}

func newHelpers(t *testing.T) *helpers {
	t.Helper()
	return &helpers{t: t, dir: program.Static().Folder(t, programs...), texts: make(map[string]string)}
}

// help returns the output of a command with --help.
func (h *helpers) help(words []string) string {
	h.t.Helper()
	command := strings.Join(words, " ")
	if text, ok := h.texts[command]; ok {
		return text
	}
	ctx, cancel := context.WithTimeout(context.Background(), helpTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(h.dir, words[0]),
		append(slices.Clone(words[1:]), "--help")...).CombinedOutput()
	if err != nil {
		h.t.Errorf("%s --help: %v", command, err)
	}
	h.texts[command] = string(out)
	return h.texts[command]
}

// isSubcommand reports whether a help text lists the word among its commands.
func isSubcommand(help, word string) bool {
	_, list, _ := strings.Cut(help, "\nAvailable Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	return regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(word) + `\s`).MatchString(list)
}

// hasFlag reports whether a help text lists the flag.
func hasFlag(help, flag string) bool {
	return regexp.MustCompile(`(?m)^ +(-\w, )?` + regexp.QuoteMeta(flag) + `(\s|$)`).MatchString(help)
}

// runsAlone reports whether the command is a program that runs without the name of a command, as volbridge does.
func runsAlone(command []string, help string) bool {
	return len(command) == 1 && strings.Contains(help, "\nUsage:\n  "+command[0]+" [flags]\n")
}

// check returns the errors of one use of a program, given as its words. The words after -- are another command,
// possibly also one of the repository.
func (h *helpers) check(words []string) []string {
	h.t.Helper()
	if i := slices.Index(words, "--"); i > 0 {
		problems := h.check(words[:i])
		if other := words[i+1:]; len(other) > 0 && slices.Contains(programs, filepath.Base(other[0])) {
			problems = append(problems, h.check(other)...)
		}
		return problems
	}
	command := []string{filepath.Base(words[0])}
	rest := words[1:]
	for len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && isSubcommand(h.help(command), rest[0]) {
		command, rest = append(command, rest[0]), rest[1:]
	}
	help := h.help(command)
	var problems []string
	if strings.Contains(help, "\nAvailable Commands:\n") && !runsAlone(command, help) {
		problems = append(problems, fmt.Sprintf("%q names no command to run", strings.Join(words, " ")))
	}
	for _, word := range rest {
		flag, _, _ := strings.Cut(word, "=")
		if strings.HasPrefix(flag, "-") && flag != "-" && flag != "--help" && !hasFlag(help, flag) {
			problems = append(problems, fmt.Sprintf("%s has no flag %s", strings.Join(command, " "), flag))
		}
	}
	return problems
}

// uses returns the uses of the repository's programs in a shell text: the words from the program's name to the end of
// the command.
func uses(text string) [][]string {
	text = strings.ReplaceAll(text, "\\\n", " ")
	var list [][]string
	for _, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, " #")
		for _, command := range regexp.MustCompile(`&&|\|\||[|;&()]`).Split(line, -1) {
			words := strings.Fields(command)
			if i := slices.IndexFunc(words, func(word string) bool {
				return slices.Contains(programs,
					filepath.Base(word))
			}); i >= 0 && runs(words[:i]) {
				list = append(list, words[i:])
			}
		}
	}
	return list
}

// runs reports whether a program still runs with the words before its name: assignments, or sudo.
func runs(before []string) bool {
	return !slices.ContainsFunc(before, func(word string) bool {
		return word != "sudo" &&
			!strings.Contains(word, "=")
	})
}

// TestCommands checks the documents against the programs and the Makefile.
func TestCommands(t *testing.T) {
	h := newHelpers(t)
	t.Run("shell examples", h.shellExamples)
	t.Run("flags of volpeer", h.flagsOfVolpeer)
	t.Run("example of L4S", h.exampleOfL4S)
}

// shellExamples checks the commands in shell blocks.
func (h *helpers) shellExamples(t *testing.T) {
	targets := makeTargets(t)
	found := 0
	for _, d := range documents(t) {
		for _, b := range d.blocks() {
			if b.info != "sh" {
				continue
			}
			for _, words := range uses(b.text) {
				found++
				for _, problem := range h.check(words) {
					t.Errorf("%s, line %d: %s", d.name, b.line, problem)
				}
			}
			for _, match := range regexp.MustCompile(`(?m)^make ([a-z]+)`).FindAllStringSubmatch(b.text, -1) {
				if !slices.Contains(targets, match[1]) {
					t.Errorf("%s, line %d: the Makefile has no target %s", d.name, b.line, match[1])
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("found %d uses of %v, expected more: does the test still see them?", found, programs)
	}
}

// flagsOfVolpeer checks the flags in docs/client.md outside of blocks: all exist, and none is missing.
func (h *helpers) flagsOfVolpeer(t *testing.T) {
	page := readDocument(t, filepath.Join(root, "docs", "client.md"))
	publishing, rest, ok := strings.Cut(page.prose(), "\n### Watching\n")
	if !ok {
		t.Fatal("docs/client.md has no part about watching")
	}
	watching, _, _ := strings.Cut(rest, "\n## ")
	server := h.help([]string{"volsfu", "serve"})
	for _, part := range []struct{ command, text string }{{"publish", publishing}, {"watch", watching}} {
		help := h.help([]string{"volpeer", part.command})
		flags := regexp.MustCompile(`--[a-z][a-z0-9-]*`).FindAllString(part.text, -1)
		if len(flags) < 5 {
			t.Errorf("the part about volpeer %s names %d flags, expected more", part.command, len(flags))
		}
		for _, flag := range flags {
			if !hasFlag(help, flag) && !hasFlag(server, flag) {
				t.Errorf("volpeer %s has no flag %s", part.command, flag)
			}
		}
		for _, match := range regexp.MustCompile(`(?m)^ +--([a-z0-9-]+)`).FindAllStringSubmatch(help, -1) {
			if name := "--" + match[1]; !strings.Contains(page.text, name) {
				t.Errorf("docs/client.md does not mention volpeer %s %s", part.command, name)
			}
		}
	}
}

// exampleOfL4S runs the first command of docs/l4s.md, which is in virtual time, and compares the names of its figures
// with those of the page.
func (h *helpers) exampleOfL4S(t *testing.T) {
	blocks := readDocument(t, filepath.Join(root, "docs", "l4s.md")).blocks()
	if len(blocks) < 2 || blocks[0].info != "sh" || blocks[1].info != "text" {
		t.Fatal("docs/l4s.md does not begin with a command and its output")
	}
	words := strings.Fields(blocks[0].text)
	ctx, cancel := context.WithTimeout(context.Background(), helpTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(h.dir, words[0]), words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
	// Two spaces or more separate a name from its value.
	name := regexp.MustCompile(`(?m)^.*?  `)
	got, want := name.FindAllString(string(out), -1), name.FindAllString(blocks[1].text, -1)
	if !slices.Equal(got, want) {
		t.Errorf("the command prints\n%s\nthe page has\n%s", out, blocks[1].text)
	}
}

// makeTargets are the documented targets of the Makefile.
func makeTargets(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, match := range regexp.MustCompile(`(?m)^([a-z]+):.*## `).FindAllStringSubmatch(string(text), -1) {
		targets = append(targets, match[1])
	}
	return targets
}

func TestUses(t *testing.T) {
	text := "(umask 077; printf x >keys)\nVOLSFU_LISTEN=:80 sudo bin/volsfu serve --dev \\\n" +
		"  --listen :80 # volsfu nothing\n" +
		"echo 'stats' | volpeer watch --json && vollab check first-light\ninstall -m 755 volsfu /usr/local/bin/\n"
	want := [][]string{
		{"bin/volsfu", "serve", "--dev", "--listen", ":80"}, {"volpeer", "watch", "--json"},
		{"vollab", "check", "first-light"},
	}
	got := uses(text)
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %q, expected %q", got, want)
	}
}
