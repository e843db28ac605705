package config

import (
	"bufio"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// redacted replaces the value of a secret that is set.
const redacted = "REDACTED"

// lineWidth is the width of wrapped comments, in characters.
const lineWidth = 110

const header = `# The configuration of volsfu serve, read by --config FILE or VOLSFU_CONFIG.
#
# Every key is also a flag and an environment variable, named below it. Flags have precedence over variables, variables
# over this file, and this file over the defaults. Durations have a unit (150ms, 15s, 2m). Lists are [a, b] here and
# a,b in flags and variables. Unknown keys are errors. "volsfu config check" checks a file, "volsfu config print" prints
# the current values in this form.
`

// Print writes the current values as a YAML file with every key explained. Secrets are not shown.
func (l *Loader) Print(to io.Writer) error {
	w := bufio.NewWriter(to)
	fmt.Fprint(w, header, "\n")
	printSection(w, l.root, "")
	return w.Flush()
}

func printSection(w *bufio.Writer, s *section, indent string) {
	for i, k := range s.keys {
		if i > 0 {
			fmt.Fprintln(w)
		}
		printComment(w, indent, capitalised(k.help)+".")
		printComment(w, indent, "--"+k.flag+", "+k.environment())
		fmt.Fprintf(w, "%s%s: %s\n", indent, k.path[len(k.path)-1], k.yaml())
	}
	for i, sub := range s.sections {
		if i > 0 || len(s.keys) > 0 {
			fmt.Fprintln(w)
		}
		printComment(w, indent, capitalised(sub.help)+".")
		fmt.Fprintf(w, "%s%s:\n", indent, sub.name)
		printSection(w, sub, indent+"  ")
	}
}

// yaml returns the value in one line.
func (k *key) yaml() string {
	value := k.value
	if k.secret && !value.IsZero() && (value.Kind() != reflect.Slice || value.Len() > 0) {
		if value.Kind() == reflect.Slice {
			return "[" + redacted + "]"
		}
		return redacted
	}
	switch kindOf(value.Type()) {
	case "string":
		return flow(textNode(value.String()))
	case "list":
		list := yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, text := range value.Interface().([]string) {
			list.Content = append(list.Content, textNode(text))
		}
		return flow(&list)
	default:
		return format(value)
	}
}

// textNode returns a node of a text, which the library quotes if necessary. Text of several lines is quoted here,
// because the library would write several lines, and so is text that begins or ends with white space, which would be
// lost.
func textNode(text string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	if strings.ContainsAny(text, "\r\n\u0085\u2028\u2029") || text != strings.TrimSpace(text) {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

func flow(node *yaml.Node) string {
	text, err := yaml.Marshal(node)
	if err != nil {
		panic(fmt.Sprintf("the text %q cannot be written as YAML: %v", node.Value, err))
	}
	return strings.TrimSuffix(string(text), "\n")
}

func printComment(w *bufio.Writer, indent, text string) {
	line := indent + "#"
	for word := range strings.FieldsSeq(text) {
		if len([]rune(line))+1+len([]rune(word)) > lineWidth {
			fmt.Fprintln(w, line)
			line = indent + "#"
		}
		line += " " + word
	}
	fmt.Fprintln(w, line)
}

func capitalised(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}
