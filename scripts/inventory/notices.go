package main

import (
	"bytes"
	"fmt"
	"strings"
)

// rule separates the components.
var rule = strings.Repeat("=", 80)

// notices returns the licences of all components.
func (i *inventory) notices() []byte {
	var b bytes.Buffer
	b.WriteString("The programs of volsfu contain the software of third parties listed below, under the licences\n" +
		"that follow each of them. volsfu itself is under the licence in the file LICENSE.\n")
	for _, c := range i.components {
		if len(c.licences) == 0 {
			continue // a library of the web pages
		}
		fmt.Fprintf(&b, "\n%s\n%s %s (%s)\n", rule, c.name, c.version, strings.Join(c.identifiers, ", "))
		for _, l := range c.licences {
			fmt.Fprintf(&b, "\n--- %s\n\n%s\n", l.file, strings.TrimSpace(l.text))
		}
	}
	fmt.Fprintf(&b, "\n%s\nThe web pages\n\n%s\n", rule, strings.TrimSpace(i.pages))
	return b.Bytes()
}
