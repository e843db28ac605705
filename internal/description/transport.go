package description

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pion/sdp/v3"
)

// MaxCandidates bounds the remote candidates of one description, in the text and trickled. Hosts with several addresses
// of both families, STUN and TURN have about twenty. Connectivity checks are sent to each, whatever its address is.
const MaxCandidates = 64

// MaxUfrag is the length of the longest user name fragment in characters. RFC 8839 section 5.4 permits 256. The
// fragment is sent in every check, to any address that the remote peer specifies; implementations have 4 to 32
// characters.
const MaxUfrag = 64

// The other lengths of ICE credentials in characters (RFC 8839 section 5.4).
const (
	minUfrag    = 4
	minPassword = 22
	maxPassword = 256
)

// transport parses the transport: from the tagged line, and for missing attributes from the session. Candidates are
// those of all lines.
func (p *parser) transport(lines []*sdp.MediaDescription, t *Transport) error {
	levels := [][]sdp.Attribute{p.tagged(lines), p.session}
	t.Ufrag, t.Password = strings.Clone(first(levels, "ice-ufrag")), strings.Clone(first(levels, "ice-pwd"))
	if err := checkCredential("ice-ufrag", t.Ufrag, minUfrag, MaxUfrag); err != nil {
		return err
	}
	if err := checkCredential("ice-pwd", t.Password, minPassword, maxPassword); err != nil {
		return err
	}
	switch t.Role = Role(strings.Clone(first(levels, "setup"))); t.Role {
	case "", RoleActpass, RoleActive, RolePassive:
	default:
		return fmt.Errorf("setup is %q, expected actpass, active or passive", t.Role)
	}
	for _, attributes := range levels {
		fingerprint, err := parseFingerprints(attributes)
		if err != nil {
			return err
		}
		if fingerprint != "" {
			t.Fingerprint = fingerprint
			break
		}
	}
	t.Lite = has(p.session, "ice-lite")
	t.EndOfCandidates = has(p.session, "end-of-candidates")
	return p.candidates(lines, t)
}

// tagged returns the attributes of the first line of the BUNDLE group. If that line is rejected, or there is no group,
// it is the first line in use.
func (p *parser) tagged(lines []*sdp.MediaDescription) []sdp.Attribute {
	i := slices.IndexFunc(lines, func(media *sdp.MediaDescription) bool {
		mid, _ := media.Attribute("mid")
		return mid == p.tag && p.tag != "" && p.inUse(media)
	})
	if i < 0 {
		i = slices.IndexFunc(lines, p.inUse)
	}
	return lines[i].Attributes
}

// candidates collects the candidates of all lines in use: lines other than the tagged one may repeat them.
func (p *parser) candidates(lines []*sdp.MediaDescription, t *Transport) error {
	for _, media := range lines {
		if !p.inUse(media) {
			continue
		}
		for _, attribute := range media.Attributes {
			switch attribute.Key {
			case "candidate":
				candidate := "candidate:" + attribute.Value
				if slices.Contains(t.Candidates, candidate) {
					continue
				}
				if len(t.Candidates) == MaxCandidates {
					return fmt.Errorf("more than %d candidates", MaxCandidates)
				}
				t.Candidates = append(t.Candidates, candidate)
			case "end-of-candidates":
				t.EndOfCandidates = true
			}
		}
	}
	return nil
}

// checkCredential reports an ICE credential that does not fit STUN. A missing one passes.
func checkCredential(key, value string, shortest, longest int) error {
	printable := !strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' })
	if value == "" || len(value) >= shortest && len(value) <= longest && printable {
		return nil
	}
	return fmt.Errorf("%s of %d bytes, expected %d to %d letters and digits", key, len(value), shortest, longest)
}

// parseFingerprints returns the first fingerprint with a supported hash function, an error if there are only others, or
// "" if there are none.
func parseFingerprints(attributes []sdp.Attribute) (string, error) {
	var unknown error
	for _, attribute := range attributes {
		if attribute.Key != "fingerprint" {
			continue
		}
		fingerprint, err := parseFingerprint(attribute.Value)
		if err == nil {
			return fingerprint, nil
		}
		unknown = err
	}
	return "", unknown
}

// parseFingerprint checks a fingerprint, and normalises it to RFC 8122 section 5: the function in lower case, the value
// in upper case.
func parseFingerprint(value string) (string, error) {
	function, sum, _ := strings.Cut(value, " ")
	function, sum = strings.ToLower(function), strings.ToUpper(sum)
	size := 0
	switch function {
	case "sha-256":
		size = 32
	case "sha-384":
		size = 48
	case "sha-512":
		size = 64
	default:
		return "", fmt.Errorf("fingerprint by %q, expected sha-256, sha-384 or sha-512", function)
	}
	pairs := strings.Split(sum, ":")
	isPair := func(pair string) bool { return len(pair) == 2 && isHex(pair[0]) && isHex(pair[1]) }
	if len(pairs) != size || slices.ContainsFunc(pairs, func(pair string) bool { return !isPair(pair) }) {
		return "", fmt.Errorf("fingerprint by %s, expected %d bytes in hexadecimal with colons between them",
			function, size)
	}
	return function + " " + sum, nil
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'A' && c <= 'F' }

// first returns the value of an attribute on the first level that has it.
func first(levels [][]sdp.Attribute, key string) string {
	for _, attributes := range levels {
		for _, attribute := range attributes {
			if attribute.Key == key && attribute.Value != "" {
				return attribute.Value
			}
		}
	}
	return ""
}

func has(attributes []sdp.Attribute, key string) bool {
	return slices.ContainsFunc(attributes, func(a sdp.Attribute) bool { return a.Key == key })
}
