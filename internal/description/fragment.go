package description

import (
	"fmt"
	"slices"
	"strings"
)

// ParseFragment parses an SDP fragment of trickle ICE (RFC 8840): candidates, and credentials if there are any. It
// ignores attributes of other subjects. Fragments of several lines are those of one bundle. The error wraps
// ErrDescription.
func ParseFragment(text string) (Transport, error) {
	var t Transport
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			continue
		}
		kind, value, ok := strings.Cut(line, "=")
		if !ok || len(kind) != 1 || strings.ContainsRune(value, '\r') {
			return Transport{}, fmt.Errorf("%w: %.60q is not a line of SDP", ErrDescription, line)
		}
		if kind != "a" {
			continue
		}
		if err := t.addAttribute(value); err != nil {
			return Transport{}, fmt.Errorf("%w: %w", ErrDescription, err)
		}
	}
	if (t.Ufrag == "") != (t.Password == "") {
		return Transport{}, fmt.Errorf("%w: a=ice-ufrag and a=ice-pwd belong together", ErrDescription)
	}
	return t, nil
}

// addAttribute adds an attribute of a fragment. Of credentials the first count.
func (t *Transport) addAttribute(attribute string) error {
	key, value, _ := strings.Cut(attribute, ":")
	value = strings.TrimSpace(value)
	switch key {
	case "ice-ufrag":
		if t.Ufrag == "" {
			t.Ufrag = strings.Clone(value)
		}
		return checkCredential(key, value, minUfrag, MaxUfrag)
	case "ice-pwd":
		if t.Password == "" {
			t.Password = strings.Clone(value)
		}
		return checkCredential(key, value, minPassword, maxPassword)
	case "end-of-candidates":
		t.EndOfCandidates = true
	case "candidate":
		candidate := "candidate:" + value
		switch {
		case slices.Contains(t.Candidates, candidate):
		case len(t.Candidates) == MaxCandidates:
			return fmt.Errorf("more than %d candidates", MaxCandidates)
		default:
			t.Candidates = append(t.Candidates, candidate)
		}
	}
	return nil
}

// MarshalFragment returns the credentials and candidates of the description as an SDP fragment (RFC 8840).
func (d *Description) MarshalFragment() string {
	var t text
	t.credentials(&Transport{Ufrag: d.Transport.Ufrag, Password: d.Transport.Password})
	i := d.tagged()
	if i < 0 {
		return t.String()
	}
	t.line("m=", string(d.Lines[i].Kind), " 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:", d.Lines[i].MID)
	for _, candidate := range d.Transport.Candidates {
		t.line("a=", candidate)
	}
	if d.Transport.EndOfCandidates {
		t.line("a=end-of-candidates")
	}
	return t.String()
}
