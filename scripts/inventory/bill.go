package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// The following types are those parts of CycloneDX 1.6 that the bill has.
type (
	bill struct {
		Format       string       `json:"bomFormat"`
		SpecVersion  string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []entry      `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Component entry `json:"component"`
	}
	entry struct {
		Type     string          `json:"type"`
		Ref      string          `json:"bom-ref"`
		Name     string          `json:"name"`
		Version  string          `json:"version"`
		Hashes   []hash          `json:"hashes,omitempty"`
		Licences []licenceChoice `json:"licenses,omitempty"`
		PURL     string          `json:"purl,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	licenceChoice struct {
		Licence licenceID `json:"license"`
	}
	licenceID struct {
		ID string `json:"id"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	}
)

// bill returns the bill of materials as JSON. Without a time and a serial number, the same programs give the same bill.
func (i *inventory) bill(version string) ([]byte, error) {
	release := entry{Type: "application", Ref: "volsfu@" + version, Name: "volsfu", Version: version,
		Licences: choices([]string{"Apache-2.0"})}
	b := bill{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{release}}
	top := dependency{Ref: release.Ref}
	for _, p := range i.programs {
		b.Components = append(b.Components, entry{Type: "application", Ref: p.name, Name: p.name, Version: version,
			Hashes: []hash{{"SHA-256", p.digest}}})
		b.Dependencies = append(b.Dependencies, dependency{p.name, p.uses})
		top.DependsOn = append(top.DependsOn, p.name)
	}
	b.Dependencies = append(b.Dependencies, top)
	for _, c := range i.components {
		e := entry{Type: "library", Ref: c.purl, Name: c.name, Version: c.version, Licences: choices(c.identifiers),
			PURL: c.purl}
		if c.hash != nil {
			e.Hashes = []hash{*c.hash}
		}
		b.Components = append(b.Components, e)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(b); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

func choices(identifiers []string) []licenceChoice {
	var all []licenceChoice
	for _, id := range identifiers {
		all = append(all, licenceChoice{licenceID{id}})
	}
	return all
}

// integrity returns npm's digest of a package (https://www.w3.org/TR/SRI/) in the form of CycloneDX.
func integrity(text string) (*hash, error) {
	encoded, ok := strings.CutPrefix(text, "sha512-")
	if !ok {
		return nil, fmt.Errorf("integrity %q: expected sha512-BASE64", text)
	}
	sum, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("integrity %q: %w", text, err)
	}
	return &hash{"SHA-512", hex.EncodeToString(sum)}, nil
}
